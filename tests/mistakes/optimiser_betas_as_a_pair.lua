local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Linear(4, 2)
local opt = optim.Adam(net:parameters(), { lr = 1e-3, betas = { 0.9, 0.98 } })
