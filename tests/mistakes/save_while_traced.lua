local dc, nn = require "deepc", require "deepc.nn"

local net = nn.Linear(784, 10)
local step = dc.fn("step(x: f32[64, 784]) -> f32[64, 10]", function(x)
  dc.save("/tmp/net.safetensors", net)
  local y = net(x)
  return y
end)
