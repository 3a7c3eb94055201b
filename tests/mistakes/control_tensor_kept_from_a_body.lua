local dc = require "deepc"

dc.fn("f(xs: f32[10, 4]) -> f32[4]", function(xs)
  local last
  dc.scan(function(s, x)
    last = x * 2
    return s + last
  end, dc.zeros "f32[4]", xs)
  return last
end)
