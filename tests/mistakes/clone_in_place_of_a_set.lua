local dc = require "deepc"

local w = dc.param("f32[3]", 1)
w = w - 0.1 * dc.ones "f32[3]"
w:set(0)
