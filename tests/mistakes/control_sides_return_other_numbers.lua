local dc = require "deepc"

dc.fn("f(x: f32[4]) -> f32[4]", function(x)
  return dc.cond(x:sum():gt(0), function(a) return a, 1 end, function(a) return a end, x)
end)
