local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Sequential { nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(16, 16, 3) }
net(dc.zeros "f32[64, 1, 28, 28]")
