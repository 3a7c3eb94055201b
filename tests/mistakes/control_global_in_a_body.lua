local dc = require "deepc"

steps = 0
dc.fn("f(xs: f32[10]) -> f32[]", function(xs)
  return (dc.scan(function(s, x)
    steps = steps + 1
    return s + x
  end, 0, xs))
end)
