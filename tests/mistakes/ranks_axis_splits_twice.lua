local dc = require "deepc"

dc.mesh { data = 1 }
local outer = dc.fn("outer(x: f32[8 @ data, 8 @ data]) -> f32[8, 8]", function(x)
  return x * x
end)
outer(dc.ones "f32[8, 8]")
