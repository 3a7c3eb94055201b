local dc = require "deepc"

local w = dc.param "f32[4]"
dc.fn("step(x: f32[4]) -> f32[4]", function(x)
  w = w - x * 0.1
  return w
end)
