local dc = require "deepc"

local f = dc.fn("f(x: f32[t <= 512])", function(x)
  return x + dc.zeros "f32[512]"
end)

print(f(dc.zeros "f32[8]"))
