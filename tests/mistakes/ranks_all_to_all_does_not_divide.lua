-- run: deepc check
local dc = require "deepc"

dc.mesh { data = 4 }
dc.all_to_all(dc.ones "f32[8, 6]", 2, 1)
