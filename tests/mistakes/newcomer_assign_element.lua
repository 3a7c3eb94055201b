local dc = require "deepc"

local a = dc.zeros "f32[3]"
a[1] = 5
