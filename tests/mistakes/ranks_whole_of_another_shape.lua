local dc = require "deepc"

dc.mesh { data = 1 }
dc.whole(dc.ones "f32[9, 2]", "f32[2, 9 @ data]")
