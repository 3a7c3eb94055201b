local dc = require "deepc"

dc.fn("steps(x: f32[]) -> i32[]", function(x)
  return (dc.loop(function(c) return c.x:lt(10) end, function(c)
    return { x = c.x * 2, n = c.n + dc.full("i32[]", 1):cast "i64" }
  end, { x = x, n = dc.zeros "i32[]" })).n
end)
