local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"

local net = nn.Linear(4, 2)
local opt = optim.SGD(net:parameters(), { lr = 0.1 })
net:to "eval"
local step = dc.fn("step(x: f32[n, 4]) -> f32[]", function(x)
  local loss = (net(x) ^ 2):mean()
  opt:step(loss)
  return loss
end)
print(step(dc.tensor({ { 1, 2, 3, 4 } }):to "eval"))
