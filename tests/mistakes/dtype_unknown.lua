local dc = require "deepc"

local x = dc.ones("f32[3]"):cast "float32"
