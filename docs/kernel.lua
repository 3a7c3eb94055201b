local dc = require "deepc"

local scale = dc.fn("scale(x: f32[100], s: f32[]) -> f32[100]", function(x, s)
  return dc.maximum(x * s + 1, 0)
end)

print(scale(dc.ones "f32[100]", 2))
