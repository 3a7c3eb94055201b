local dc = require "deepc"

local f = dc.fn("f(x: f32[n, d]) -> f32[d, n]", function(x)
  return x * 2
end)
f(dc.ones "f32[3, 4]")
