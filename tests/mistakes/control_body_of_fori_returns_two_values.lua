local dc = require "deepc"

dc.fn("f(x: f32[]) -> f32[]", function(x)
  return dc.fori(10, function(i, c) return i, c + x end, 0)
end)
