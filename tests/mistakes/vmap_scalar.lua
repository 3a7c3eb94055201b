local dc = require "deepc"

dc.fn("f(x: f32[3], s: f32[]) -> f32[3]", function(x, s)
  return dc.vmap(function(a, b) return a * b end)(x, s)
end)
