local dc = require "deepc"

local f = dc.fn("f(x: f32[batch=64, 3]) -> f32[batch]", function(x)
  return x:sum(2)
end, { batch = 32 })
