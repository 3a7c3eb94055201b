local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Sequential { nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1) }
local f = dc.fn("f(x: f32[2, 4]) -> f32[4, 1]", function(x)
  local hidden = net[1](x)
  local grads = dc.grad(hidden:sum(), net:parameters())
  return grads[3]
end)
