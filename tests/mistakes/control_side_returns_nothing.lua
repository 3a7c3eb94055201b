local dc = require "deepc"

dc.fn("f(x: f32[4]) -> f32[4]", function(x)
  local y = x
  dc.cond(x:sum():gt(0), function() y = x * 2 end, function() end)
  return y
end)
