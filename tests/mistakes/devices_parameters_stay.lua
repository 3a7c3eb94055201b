local dc, nn = require "deepc", require "deepc.nn"

local net = nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2) }
local predict = dc.fn("predict(x: f32[n, 4]) -> f32[n, 2]", function(x) return net(x) end)
print(predict(dc.tensor({ { 1, 2, 3, 4 } }):to "eval"))
