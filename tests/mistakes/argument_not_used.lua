-- run: script
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local net = nn.Linear(4, 2)
local opt = optim.SGD(net:parameters(), { lr = 0.1 })

local step = dc.fn("step(x: f32[3, 4], y: i32[3], weight: f32[3], lr: f32[], _old: f32[]) -> f32[]",
  function(x, y, weight, lr, _old) -- luacheck: ignore
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end)
print(step(dc.ones "f32[3, 4]", dc.zeros "i32[3]", dc.ones "f32[3]", 0.01, 0).shape)
