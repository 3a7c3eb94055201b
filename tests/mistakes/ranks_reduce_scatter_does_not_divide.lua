-- run: deepc check
local dc = require "deepc"

dc.mesh { data = 4 }
dc.reduce_scatter(dc.ones "f32[6, 2]", 1)
