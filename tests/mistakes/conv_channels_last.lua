local dc, nn = require "deepc", require "deepc.nn"

local conv = nn.Conv2d(3, 8, 3)
conv(dc.ones "f32[2, 28, 28, 3]")
