local dc = require "deepc"

dc.fn("f(x: f32[]) -> f32[]", function(x)
  return dc.loop(function(c) return c:lt(100) end, function(c)
    dc.print("c", c)
    return c * 2
  end, x)
end)
