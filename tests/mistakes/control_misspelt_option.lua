local dc = require "deepc"

dc.fn("f(x: f32[10]) -> f32[]", function(x)
  return (dc.scan(function(s, e) return s + e end, 0, x, { reversed = true }))
end)
