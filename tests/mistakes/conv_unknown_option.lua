local dc = require "deepc"

local x = dc.zeros "f32[8, 6, 28, 28]"
print(dc.conv2d(x, dc.zeros "f32[4, 6, 5, 5]", { strides = 2 }))
