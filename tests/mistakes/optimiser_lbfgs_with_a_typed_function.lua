local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Linear(4, 2)
local opt = optim.LBFGS(net:parameters())
local loss = dc.fn("loss(x: f32[3, 4]) -> f32[]", function(x) return net(x):square():mean() end)
opt:step(loss, dc.ones "f32[3, 4]")
