local dc = require "deepc"

dc.fn("f(x: f32[3, 2]) -> f32[2, 3]", function(x)
  return dc.vmap(function(a) return a * 2 end, { out_axes = 3 })(x)
end)
