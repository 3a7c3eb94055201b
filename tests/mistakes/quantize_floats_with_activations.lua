local nn = require "deepc.nn"

local net = nn.Sequential { nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10) }
nn.quantize(net, "f8_e4m3", { activations = 8 })
