local dc = require "deepc"
local linalg = require "deepc.linalg"

local f = dc.fn("f(a: f32[2, 2, 2]) -> c64[2, 2]", function(a)
  local w = linalg.eigvals(a)
  return w
end)
f(dc.tensor { { { 1, 2 }, { 3, 4 } }, { { 0 / 0, 0 }, { 0, 1 } } })
