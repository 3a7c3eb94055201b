local dc = require "deepc"
local linalg = require "deepc.linalg"

dc.fn("f(x: f32[n <= 8, n]) -> f32[]", function(x)
  local y = linalg.det(x)
  return y
end)
