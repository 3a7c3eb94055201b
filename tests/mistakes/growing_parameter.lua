local dc = require "deepc"

local _ = dc.param "f32[t <= 512, 64]"
