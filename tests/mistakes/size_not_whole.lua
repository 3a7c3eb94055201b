local dc = require "deepc"

local f = dc.fn("f(x: f32[2*n]) -> f32[n]", function(x)
  return x[{ { 1, dc.dim "n" } }]
end)
f(dc.ones "f32[7]")
