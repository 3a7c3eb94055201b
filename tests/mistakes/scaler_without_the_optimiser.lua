local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Linear(4, 2)
local scaler = optim.GradScaler()
scaler:step(net(dc.ones "f32[3, 4]"):square():mean())
