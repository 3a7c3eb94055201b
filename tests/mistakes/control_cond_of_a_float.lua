local dc = require "deepc"

dc.fn("f(x: f32[]) -> f32[]", function(x)
  return dc.cond(x, function(a) return a end, function(a) return -a end, x)
end)
