local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"

local net = nn.Linear(4, 2)
local opt = optim.Adam(net:parameters())
dc.fn("step(x: f32[8, 4]) -> f32[]", function(x)
  local loss = net(x):square():mean()
  opt:step(loss)
  opt:step(loss)
  return loss
end)
