local dc = require "deepc"
local shrink = dc.fn("shrink(x: f32[2], lr) -> f32[2]", function(x, lr) return x - lr * x end)
local x = dc.ones "f32[2]"
for i = 1, 20 do
  x = shrink(x, 0.1 / i)
end
