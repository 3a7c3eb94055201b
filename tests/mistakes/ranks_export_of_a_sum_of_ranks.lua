local dc = require "deepc"

dc.mesh { data = 1 }
local sum = dc.fn("sum(x: f32[4]) -> f32[4]", function(x)
  return dc.all_reduce(x)
end)
sum(dc.ones "f32[4]")
sum:export(os.tmpname())
