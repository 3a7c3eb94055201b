-- run: deepc check
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
for _ = 1, 2 do
  print(dc.zeros "f32[3, 1]" - dc.zeros "f32[3]")
end
local net = nn.Linear(2, 1)
local opt = optim.SGD({ net.weight }, { lr = 0.1 })
dc.fn("step(x: f32[4, 2])", function(x)
  opt:step(net(x):square():mean())
end)(dc.zeros "f32[4, 2]")
