-- luacheck: ignore
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
dc.check_numbers(true)

local net = nn.Sequential { nn.Linear(4, 8), nn.Linear(8, 1) }
for _, w in ipairs(net:parameters()) do w:set(0.1) end
local opt = optim.SGD(net:parameters(), { lr = 1e20 })
local step = dc.fn("step(x: f32[16, 4], y: f32[16, 1]) -> f32[]", function(x, y)
  local loss = ((net(x) - y) ^ 2):mean()
  opt:step(loss)
  return loss
end)
for _ = 1, 10 do
  step(dc.ones "f32[16, 4]", dc.zeros "f32[16, 1]")
end
