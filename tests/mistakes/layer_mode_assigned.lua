local nn = require "deepc.nn"
local net = nn.Sequential { nn.Linear(4, 4), nn.Dropout(0.5) }
net.training = false
