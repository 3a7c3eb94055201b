local dc = require "deepc"

local x = dc.zeros "f32[8, 6, 28, 28]"
print(dc.conv2d(x, dc.zeros "f32[4, 2, 5, 5]", { groups = 4 }))
