local dc = require "deepc"

local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x)
  return dc.remat(x:tanh())
end)
