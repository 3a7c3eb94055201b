local dc = require "deepc"

dc.mesh { data = 1 }
dc.fn("f(x: f32[@ data, 10]) -> f32[10]", function(x) return x:sum(1) end)
