local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Linear(4, 3)
local opt = optim.SGD(net:parameters(), { lr = 0.1 })
local step = dc.fn("step(x: f32[2, 4], y: i32[2]) -> f32[]", function(x, y)
  local loss = nn.cross_entropy(net(x), y)
  opt:step(loss)
  return loss
end)
step(dc.ones "f32[2, 4]", dc.tensor({ 0, 1 }, "i32"))
step(dc.ones "f32[2, 4]", dc.tensor({ 0, 3 }, "i32"))
