local dc = require "deepc"

local w = dc.param("f32[4]", 0)
w:set()
