local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Linear(4, 2)
local opt = optim.Adam(net:parameters())
opt.clip_norm = 1
