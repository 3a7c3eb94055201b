local dc = require "deepc"

dc.fn("f(x: f32[4]) -> f32[4]", function(x)
  local r = dc.cond(x:sum():gt(0), function() return { a = x, n = x:argmax() } end, function()
    return { a = x * 2, n = x:max() }
  end)
  return r.a
end)
