-- run: deepc check
local dc = require "deepc"

local f = dc.fn("f(x: f32[4]) -> bool[4]", function(x)
  local low, high = x:gt(0), x:lt(1)
  return low and high
end)
