local dc = require "deepc"

local v = dc.ones "f32[3]"
local column = v:unsqueeze(2)
