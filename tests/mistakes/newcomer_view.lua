local dc = require "deepc"

local images = dc.zeros "f32[64, 28, 28]"
local rows = images:view(64, -1)
