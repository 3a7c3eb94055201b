local dc = require "deepc"

local f = dc.fn("f(x: f32[batch=4, d=16]) -> f32[4, 16]", function(x)
  return x / dc.dim "depth" ^ 0.5
end)
