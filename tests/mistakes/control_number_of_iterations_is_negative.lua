local dc = require "deepc"

dc.fn("f(x: f32[]) -> f32[]", function(x)
  return dc.fori(-1, function(_, c) return c + x end, 0)
end)
