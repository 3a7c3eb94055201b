local nn = require "deepc.nn"

local net = nn.Sequential { nn.Flatten(), nn.Linear(784, 10) }
net:summary "f32[64, 28, 20]"
