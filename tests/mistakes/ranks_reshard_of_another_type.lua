local dc = require "deepc"

dc.mesh { data = 1 }
dc.reshard(dc.ones "f32[8, 4]", "f32[4 @ data, 8]")
