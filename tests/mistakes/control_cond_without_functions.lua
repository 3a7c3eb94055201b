local dc = require "deepc"

dc.fn("f(x: f32[]) -> f32[]", function(x)
  return dc.cond(x:gt(0), x, -x)
end)
