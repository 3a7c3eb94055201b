local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Sequential { nn.Conv2d(1, 8, 3), nn.ReLU() }
local step = dc.fn("step(x: f32[64, 28, 28]) -> f32[64, 8, 26, 26]", function(x)
  return net(x)
end)
