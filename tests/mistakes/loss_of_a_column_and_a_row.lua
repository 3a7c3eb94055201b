local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Linear(4, 1)
local x, y = dc.zeros "f32[8, 4]", dc.zeros "f32[8]"
nn.mse_loss(net(x), y)
