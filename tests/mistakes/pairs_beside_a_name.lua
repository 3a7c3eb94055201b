local dc = require "deepc"
dc.fn("error_of(p: f32[batch, 1], y: f32[64]) -> f32[]", function(p, y)
  return (p - y):square():mean()
end, { batch = 64 })
