local dc = require "deepc"

local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x, scale)
  return x * scale
end)
print(f(dc.ones "f32[4]"))
