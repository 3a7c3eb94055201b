local dc = require "deepc"

local generator = dc.generator()
dc.fn("f(xs: f32[10]) -> f32[]", function(xs)
  return (dc.scan(function(s, x)
    generator:set { 1, 2, 3, 4 }
    return s + x * dc.rand "f32[]"
  end, 0, xs))
end)
