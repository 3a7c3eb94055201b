local dc = require "deepc"

print(dc.fn("f(x: f32[t <= n], y: f32[n]) -> f32[]", function(x, y)
  return x:sum() + y:sum()
end))
