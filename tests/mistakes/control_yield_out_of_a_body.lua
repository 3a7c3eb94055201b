local dc = require "deepc"

dc.fn("f(xs: f32[10]) -> f32[]", function(xs)
  local sum
  local co = coroutine.wrap(function()
    sum = dc.scan(function(s, x)
      coroutine.yield()
      return s + x
    end, 0, xs)
  end)
  co()
  co()
  return sum
end)
