local dc = require "deepc"

local scale = dc.custom_grad(function(x, w)
  return x * w
end, function(dy, y, x, w)
  return dy * w
end)
local f = dc.fn("f(x: f32[4], w: f32[4]) -> f32[4]", function(x, w)
  return dc.grad(scale(x, w):sum(), x)
end)
