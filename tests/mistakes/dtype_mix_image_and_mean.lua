local dc = require "deepc"

local image = dc.zeros "u8[28, 28]"
local mean = dc.full("f32[]", 0.5)
local centred = image - mean
