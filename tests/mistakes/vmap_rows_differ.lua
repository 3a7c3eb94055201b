local dc = require "deepc"

dc.fn("f(x: f32[3, 2], y: f32[4, 2]) -> f32[3]", function(x, y)
  return dc.vmap(function(a, b) return (a * b):sum() end)(x, y)
end)
