local dc = require "deepc"

local f = dc.fn("f(x: f32[t <= 512]) -> f32[t]", function(x)
  return dc.concat({ x, x }, 1)
end)

print(f(dc.zeros "f32[8]"))
