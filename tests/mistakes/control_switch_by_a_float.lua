local dc = require "deepc"

dc.fn("f(k: f32[], x: f32[]) -> f32[]", function(k, x)
  return dc.switch(k, { function(a) return a end, function(a) return -a end }, x)
end)
