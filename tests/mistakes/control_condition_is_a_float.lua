local dc = require "deepc"

dc.fn("f(x: f32[]) -> f32[]", function(x)
  return dc.loop(function(c) return c - 10 end, function(c) return c - 1 end, x)
end)
