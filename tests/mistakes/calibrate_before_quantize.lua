local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Sequential { nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10) }
nn.calibrate(net, { dc.ones "f32[4, 32]" })
