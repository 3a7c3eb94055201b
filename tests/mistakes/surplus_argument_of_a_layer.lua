local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Sequential { nn.Linear(4, 2), nn.ReLU() }
print(net(dc.ones "f32[3, 4]", dc.ones "f32[3]"))
