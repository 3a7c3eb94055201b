-- run: deepc check
local dc = require "deepc"

local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x)
  local m = x:gt(0)
  if m and x then
    return -x
  end
  return x
end)
local g = dc.fn("g(x: f32[4]) -> f32[]", function(x)
  return x
end)
