local dc = require "deepc"

local x = dc.zeros "f32[3]"
x:add_(1)
