local dc = require "deepc"

print(dc.fn("f(x: f32[t <= 512], y: f32[t <= 64]) -> f32[]", function(x, y)
  return x:sum() + y:sum()
end))
