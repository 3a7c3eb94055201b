local dc = require "deepc"

dc.fn("relu(x: f32[4]) -> f32[4]", function(x)
  return dc.cond(x:gt(0), function(a) return a end, function(a) return a * 0 end, x)
end)
