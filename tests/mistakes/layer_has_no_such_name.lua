local nn = require "deepc.nn"

local net = nn.Sequential { nn.Linear(4, 4), nn.Relu() }
