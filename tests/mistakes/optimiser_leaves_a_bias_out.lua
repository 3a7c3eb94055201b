-- run: script
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local net = nn.Sequential { nn.Linear(4, 4), nn.Linear(4, 2), nn.Linear(2, 2):freeze() }
local opt = optim.SGD({ net[2].weight }, { lr = 0.1 })

local step = dc.fn("step(x: f32[3, 4]) -> f32[]", function(x)
  local loss = net(x):square():mean()
  opt:step(loss)
  return loss
end)
print(step(dc.ones "f32[3, 4]").shape)
