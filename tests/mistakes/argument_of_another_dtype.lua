local dc = require "deepc"

local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x)
  return x / 255
end)
print(f(dc.ones "u8[64]"))
