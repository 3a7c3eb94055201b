local dc = require "deepc"

dc.fn("f(x: f32[b=3], y: f32[n=3]) -> f32[3]", function(x, y)
  return dc.vmap(function(a, b) return a * b end)(x, y)
end)
