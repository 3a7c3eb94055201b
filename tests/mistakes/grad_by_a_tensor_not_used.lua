local dc = require "deepc"

local f = dc.fn("f(x: f32[3], y: f32[3]) -> f32[3]", function(x, y)
  return dc.grad(x:sum(), y)
end)
