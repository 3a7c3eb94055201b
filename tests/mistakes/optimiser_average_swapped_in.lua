local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Linear(4, 2)
local opt, ema = optim.SGD(net:parameters()), optim.EMA(net, 0.99)
ema:swap_in()
opt:step(net(dc.ones "f32[3, 4]"):square():mean())
ema:update()
