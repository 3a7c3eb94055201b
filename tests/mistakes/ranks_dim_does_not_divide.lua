-- run: deepc check
local dc = require "deepc"

dc.mesh { data = 4 }
local mean = dc.fn("mean(x: f32[30 @ data, 10]) -> f32[10]", function(x)
  return x:mean(1)
end)
mean(dc.ones "f32[30, 10]")
