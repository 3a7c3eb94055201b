local dc = require "deepc"

dc.fn("f(xs: f32[10]) -> f32[]", function(xs)
  return (dc.scan(function(s, x)
    if x:item() > 0 then
      return s + x
    end
    return s
  end, 0, xs))
end)
