local dc = require "deepc"

print(dc.fn("f(x: f32[n]) -> f32[]", function(x)
  return x:sum()
end, { n = "at most 64" }))
