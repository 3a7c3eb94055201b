local dc = require "deepc"

local norm = dc.custom_grad(function(x)
  return (x * x):sum():sqrt()
end, function(dy, y, x)
  return dy / y
end)
local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x)
  return dc.grad(norm(x), x)
end)
