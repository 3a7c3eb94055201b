local dc = require "deepc"

local function body(s, x) return s + x end
dc.fn("f(xs: f32[10]) -> f32[]", function(xs)
  return (dc.scan(body(xs[1], xs[2]), 0, xs))
end)
