local dc = require "deepc"

dc.fn("mean(xs: f32[10]) -> f32[]", function(xs)
  local n = 0
  local function count() n = n + 1 end
  local sum = dc.scan(function(s, x)
    count()
    return s + x
  end, 0, xs)
  return sum / n
end)
