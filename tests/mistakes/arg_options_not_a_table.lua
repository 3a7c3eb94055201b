local dc = require "deepc"

local w = dc.randn("f32[784, 10]", 0.02)
