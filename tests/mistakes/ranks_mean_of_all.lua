local dc = require "deepc"

dc.mesh { data = 1 }
dc.all_reduce(dc.ones "f32[4]", { op = "mean" })
