local dc = require "deepc"
local nn = require "deepc.nn"

local t = {}
for i = 1, 64 do
  t[i] = i == 17 and 10 or i % 10
end
local labels = dc.tensor(t, "i32[64]")

local loss = dc.fn("loss(x: f32[64, 10], y: i32[64]) -> f32[]", function(x, y)
  return nn.cross_entropy(x, y)
end)
print(loss(dc.zeros "f32[64, 10]", labels))
