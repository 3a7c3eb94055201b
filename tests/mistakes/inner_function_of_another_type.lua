local dc = require "deepc"

local norm = dc.fn("norm(x: f32[n]) -> f32[]", function(x)
  return (x * x):sum():sqrt()
end)
local f = dc.fn("f(x: f32[2, 3]) -> f32[]", function(x)
  return norm(x)
end)
