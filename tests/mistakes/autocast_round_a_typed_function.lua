local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Linear(4, 2)
local forward = dc.fn("forward(x: f32[n, 4]) -> f32[n, 2]", function(x) return net(x) end)
local half = dc.autocast("bf16", forward)
print(half(dc.ones "f32[3, 4]"))
