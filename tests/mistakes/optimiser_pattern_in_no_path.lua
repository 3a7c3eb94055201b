local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Sequential { nn.Linear(4, 8), nn.Linear(8, 2) }
local opt = optim.AdamW(optim.groups(net, { { "head", lr = 1e-3 } }))
