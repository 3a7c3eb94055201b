local dc = require "deepc"

dc.fn("f(xs: f32[10]) -> f32[]", function(xs)
  local n = 0
  local sum = dc.scan(function(s, x)
    n = n + 1
    return s + x
  end, 0, xs)
  return sum / n
end)
