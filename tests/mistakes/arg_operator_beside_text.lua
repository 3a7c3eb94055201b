local dc = require "deepc"

local a = dc.ones "f32[3]"
local b = a * "2"
