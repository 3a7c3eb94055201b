local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Sequential { nn.Conv2d(1, 8, 3), nn.BatchNorm2d(16) }
net(dc.zeros "f32[64, 1, 28, 28]")
