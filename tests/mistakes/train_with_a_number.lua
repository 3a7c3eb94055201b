local nn = require "deepc.nn"

local net = nn.Sequential { nn.Dropout(0.5) }
net:train(0)
