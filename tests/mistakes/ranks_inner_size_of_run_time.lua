local dc = require "deepc"

dc.mesh { data = 1 }
local sum = dc.fn("sum(x: f32[n @ data]) -> f32[]", function(x) return x:sum() end)
dc.fn("f(x: f32[n<=8 @ data]) -> f32[]", function(x) return sum(x) end)
