-- run: deepc check
local dc = require "deepc"

local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x)
  local m = x:gt(0)
  return dc.where(not m, x, 0)
end)
