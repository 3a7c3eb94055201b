local dc = require "deepc"

local last = dc.fn("last(x: f32[2 <= t <= 512, 64]) -> f32[64]", function(x)
  return x[-1] - x[-2]
end)

print(last(dc.zeros "f32[1, 64]"))
