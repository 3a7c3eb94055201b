local dc = require "deepc"

dc.fn("f(h: f32[8], xs: f32[10, 8]) -> f32[8]", function(h, xs)
  return (dc.scan(function(s, x)
    return (s + x):sum()
  end, h, xs))
end)
