local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Linear(4, 2)
local opt = optim.SGD(net:parameters(), { lr = 0.1 })

local step = dc.fn("step(x: f32[8, 4], y: i32[8]) -> f32[]", function(x, y)
  local loss = nn.cross_entropy(net(x), y)
  opt:step(loss)
  print("loss", loss:item())
  return loss
end)
