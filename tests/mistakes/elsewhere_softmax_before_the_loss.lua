-- run: script
local dc, nn = require "deepc", require "deepc.nn"
local net = nn.Sequential { nn.Linear(4, 3), nn.Softmax() }
local f = dc.fn("f(x: f32[2, 4], y: i32[2]) -> f32[]", function(x, y) return nn.cross_entropy(net(x), y) end)
print(f(dc.ones "f32[2, 4]", dc.zeros "i32[2]").shape)
