local dc = require "deepc"

dc.fn("f(x: f32[]) -> f32[]", function(x)
  return (dc.scan(function(s) return s * 2 end, x))
end)
