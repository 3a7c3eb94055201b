local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Sequential { nn.Linear(4, 8), nn.LayerNorm(4) }
net(dc.zeros "f32[2, 4]")
