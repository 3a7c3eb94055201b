local dc = require "deepc"

local f = dc.fn("f(x: f32[t <= 512], y: f32[s <= 512])", function(x, y)
  return x + y
end)

print(f(dc.zeros "f32[8]", dc.zeros "f32[8]"))
