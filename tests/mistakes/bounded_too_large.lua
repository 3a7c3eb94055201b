local dc = require "deepc"

print(dc.fn("f(x: f32[t <= 3000000000]) -> f32[]", function(x)
  return x:sum()
end))
