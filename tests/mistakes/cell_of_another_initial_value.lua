local dc = require "deepc"

local w = dc.param("f32[4]", dc.ones "f32[5]")
