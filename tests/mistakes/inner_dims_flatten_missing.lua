local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Sequential { nn.ReLU(), nn.Linear(784, 10) }

local step = dc.fn("step(img: f32[batch=32, 28, 28]) -> f32[32, 10]", function(img)
  return net(img)
end)
