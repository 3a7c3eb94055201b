local dc = require "deepc"

dc.mesh { data = 1 }
dc.whole(dc.ones "f32[9]", "i32[9 @ data]")
