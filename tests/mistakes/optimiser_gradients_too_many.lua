local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Linear(4, 2)
local opt = optim.SGD({ net.weight }, { lr = 0.1 })
local step = dc.fn("step(x: f32[8, 4]) -> ()", function(x)
  opt:apply(dc.grad(net(x):mean(), net:parameters()))
end)
step(dc.ones "f32[8, 4]")
