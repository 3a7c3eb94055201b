local dc = require "deepc"

dc.fn("f(n: i32[]) -> f32[]", function(n)
  return (dc.scan(function(s) return s * 2 end, 1, nil, { length = n }))
end)
