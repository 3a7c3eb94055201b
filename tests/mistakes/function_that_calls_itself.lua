local dc = require "deepc"

local f
f = dc.fn("f(x: f32[n]) -> f32[n]", function(x)
  return f(x) + 1
end)
f(dc.ones "f32[3]")
