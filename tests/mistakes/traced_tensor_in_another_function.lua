local dc = require "deepc"

local kept = {}
local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  kept.x = x
  return x + 1
end)
local g = dc.fn("g(x: f32[3]) -> f32[3]", function(x)
  return x * kept.x
end)
