local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Sequential { nn.LSTM(8, 16, { layers = 2 }) }
net(dc.zeros "f32[32, 8, 100]")
