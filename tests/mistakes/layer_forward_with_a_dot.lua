local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2) }
local y = net.forward(dc.ones "f32[3, 4]")
print(y)
