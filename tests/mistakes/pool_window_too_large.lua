local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Sequential { nn.MaxPool2d(4), nn.MaxPool2d(8) }
net(dc.zeros "f32[64, 1, 28, 28]")
