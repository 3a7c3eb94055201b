local dc = require "deepc"

dc.fn("f(h: f32[8], xs: f32[10, 8]) -> f32[8]", function(h, xs)
  local last = dc.scan(function(s, x)
    return s.h + x
  end, { h = h }, xs)
  return last.h
end)
