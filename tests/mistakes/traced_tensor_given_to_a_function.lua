local dc = require "deepc"

local kept = {}
local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  kept.y = x + 1
  return kept.y
end)
local g = dc.fn("g(x: f32[3]) -> f32[]", function(x)
  return x:sum()
end)
print(g(kept.y))
