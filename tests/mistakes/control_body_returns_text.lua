local dc = require "deepc"

dc.fn("f(xs: f32[10, 8]) -> f32[8]", function(xs)
  return (dc.scan(function(s, x)
    return { h = s.h + x, name = "h" }
  end, { h = 0 }, xs)).h
end)
