local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Linear(4, 2)
local opt = optim.LBFGS(net:parameters())
opt:step(net(dc.ones "f32[3, 4]"):square():mean())
