local dc = require "deepc"

local f = dc.fn("f(x: f32[n*m]) -> f32[n]", function(x)
  return x
end)
