local dc = require "deepc"

dc.fn("f(h: f32[rows=3], xs: f32[5, columns=3]) -> f32[rows=3]", function(h, xs)
  return (dc.scan(function(_, x) return x * 2 end, h, xs))
end)
