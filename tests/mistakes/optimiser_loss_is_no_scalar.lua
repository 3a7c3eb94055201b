local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Linear(4, 2)
local opt = optim.Adam(net:parameters())
local step = dc.fn("step(x: f32[8, 4]) -> f32[8, 2]", function(x)
  local y = net(x)
  opt:step(y)
  return y
end)
