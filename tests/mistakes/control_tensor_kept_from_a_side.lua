local dc = require "deepc"

dc.fn("f(x: f32[4]) -> f32[4]", function(x)
  local y = x
  local z = dc.cond(x:sum():gt(0), function()
    y = x:sqrt()
    return y
  end, function() return x end)
  return y + z
end)
