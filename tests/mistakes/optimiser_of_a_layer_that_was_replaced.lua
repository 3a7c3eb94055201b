local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local net = nn.Sequential { nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2) }
local opt = optim.Adam(net:parameters(), { lr = 1e-3 })
local step = dc.fn("step(x: f32[8, 4]) -> f32[]", function(x)
  local loss = net(x):square():mean()
  opt:step(loss)
  return loss
end)
step(dc.ones "f32[8, 4]")
net[3] = nn.Linear(4, 10)
step(dc.ones "f32[8, 4]")
