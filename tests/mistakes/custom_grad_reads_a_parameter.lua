local dc = require "deepc"

local w = dc.param("f32[4]", 1)
local scale = dc.custom_grad(function(x)
  return x * w
end, function(dy, y, x)
  return dy * w
end)
local f = dc.fn("f(x: f32[4]) -> f32[]", function(x)
  return scale(x):sum()
end)
