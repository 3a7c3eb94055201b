local dc = require "deepc"

local f = dc.fn("f(x: f32[t <= 512, 64])", function(x)
  local a, b = x:split(2)
  return a + b
end)

print(f(dc.zeros "f32[8, 64]"))
