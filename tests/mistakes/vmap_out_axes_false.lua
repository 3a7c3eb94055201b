local dc = require "deepc"

dc.fn("f(x: f32[3]) -> f32[]", function(x)
  return dc.vmap(function(a) return a * 2 end, { out_axes = false })(x)
end)
