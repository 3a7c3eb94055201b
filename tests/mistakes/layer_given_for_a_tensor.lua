local nn = require "deepc.nn"

local net = nn.Linear(4, 2)
local loss = nn.mse_loss(net, net)
