local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Sequential { nn.Linear(4, 4), nn.Linear(4, 1) }
local opt = optim.SGD(net:parameters(), { lr = 0.1 })
local step = dc.fn("step(x: f32[2, 4]) -> f32[]", function(x)
  local loss = net[2](x):pow(2):mean()
  opt:step(loss)
  return loss
end)
