local dc = require "deepc"

dc.mesh { data = 1 }
dc.fn("f(x: f32[8 @ data]) -> f32[]", function(x) return x:sum() end, nil, { strict = "gather" })
