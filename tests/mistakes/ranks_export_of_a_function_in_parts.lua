local dc = require "deepc"

dc.mesh { data = 1 }
local mean = dc.fn("mean(x: f32[n @ data, 10]) -> f32[10]", function(x)
  return x:mean(1)
end)
mean(dc.ones "f32[32, 10]")
mean:export(os.tmpname())
