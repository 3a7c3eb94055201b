local dc = require "deepc"

dc.fn("f(n: f32[]) -> f32[]", function(n)
  return dc.fori(n, function(i, c) return c + i:cast "f32" end, 0)
end)
