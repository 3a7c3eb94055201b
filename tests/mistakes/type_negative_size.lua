local dc = require "deepc"

local x = dc.zeros "f32[-1, 784]"
