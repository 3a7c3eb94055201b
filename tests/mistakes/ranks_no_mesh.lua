local dc = require "deepc"

local mean = dc.fn("mean(x: f32[64 @ data, 10]) -> f32[10]", function(x)
  return x:mean(1)
end)
mean(dc.ones "f32[64, 10]")
