local dc = require "deepc"

dc.fn("f(x: f32[4]) -> f32[4]", function(x)
  return dc.loop(function(c) return c:lt(10) end, function(c) return c * 2 end, x)
end)
