local dc = require "deepc"

dc.fn("f(x: f32[10, 8], y: f32[12, 8]) -> f32[8]", function(x, y)
  return (dc.scan(function(s, e) return s + e.x * e.y end, dc.zeros "f32[8]", { x = x, y = y }))
end)
