local dc = require "deepc"

dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  return dc.vmap(function(a) a = a * 2 end)(x)
end)
