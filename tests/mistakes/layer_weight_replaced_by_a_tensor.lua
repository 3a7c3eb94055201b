local dc, nn = require "deepc", require "deepc.nn"

local net = nn.Sequential { nn.Linear(4, 2) }
net[1].weight = dc.zeros "f32[4, 2]"
