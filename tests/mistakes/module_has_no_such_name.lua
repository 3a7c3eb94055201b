local dc = require "deepc"

local m = dc.matmull(dc.ones "f32[2, 2]", dc.ones "f32[2, 2]")
