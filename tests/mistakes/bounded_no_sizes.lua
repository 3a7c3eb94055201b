local dc = require "deepc"

print(dc.fn("f(x: f32[8 <= t <= 4]) -> f32[]", function(x)
  return x:sum()
end))
