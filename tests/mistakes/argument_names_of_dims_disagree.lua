local dc = require "deepc"

local f = dc.fn("f(x: f32[n, 3], y: f32[n]) -> f32[n]", function(x, y)
  return x:sum(2) + y
end)
f(dc.ones "f32[batch=4, 3]", dc.ones "f32[time=4]")
