local dc = require "deepc"

local n = dc.state "f32[]"
dc.fn("f(x: f32[]) -> f32[]", function(x)
  return dc.loop(function(c)
    n:set(n + 1)
    return c:lt(10)
  end, function(c) return c * 2 end, x)
end)
