local dc = require "deepc"

dc.fn("f(xs: f32[10]) -> f32[]", function(xs)
  local seen = {}
  local sum = dc.scan(function(s, x)
    seen[#seen + 1] = true
    return s + x
  end, 0, xs)
  return sum / #seen
end)
