local nn = require "deepc.nn"

local net = nn.Sequential { nn.Linear(4, 2) }
net:zero_grad()
