local dc = require "deepc"

dc.fn("f(k: i32[], x: f32[3]) -> f32[3]", function(k, x)
  return dc.switch(k, function(a) return a end, function(a) return -a end, x)
end)
