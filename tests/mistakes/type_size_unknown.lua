local dc = require "deepc"

local x = dc.zeros "f32[batch, 784]"
