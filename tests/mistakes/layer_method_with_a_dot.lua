local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2) }
local opt = optim.Adam(net.parameters(), { lr = 1e-3 })
print(opt)
