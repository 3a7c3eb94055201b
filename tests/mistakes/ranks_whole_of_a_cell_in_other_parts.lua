local dc = require "deepc"

dc.mesh { data = 1 }
local weight = dc.param("f32[6 @ data, 6]", 1)
dc.whole(weight, "f32[6, 6 @ data]")
