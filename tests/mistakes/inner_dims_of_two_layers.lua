local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Sequential { nn.Linear(4, 16), nn.ReLU(), nn.Linear(8, 2) }
print(net(dc.ones "f32[1, 4]"))
