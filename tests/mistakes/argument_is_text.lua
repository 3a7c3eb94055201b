local dc = require "deepc"

local f = dc.fn("f(x: f32[4], lr: f32[]) -> f32[4]", function(x, lr)
  return x * lr
end)
print(f(dc.ones "f32[4]", "0.1"))
