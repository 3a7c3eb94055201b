local dc = require "deepc"

local x = dc.tensor "f32[2, 3]"
