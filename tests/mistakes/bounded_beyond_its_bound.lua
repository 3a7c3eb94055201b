local dc = require "deepc"

local half = dc.fn("half(x: f32[t <= 512, 64]) -> f32[t, 64]", function(x)
  return x / 2
end)

print(half(dc.zeros "f32[600, 64]"))
