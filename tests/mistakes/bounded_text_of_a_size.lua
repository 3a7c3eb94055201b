local dc = require "deepc"

local padded = dc.fn("padded(x: f32[t <= 512])", function(x)
  return dc.concat({ x, dc.zeros("f32[" .. #x .. "]") }, 1)
end)

print(padded(dc.zeros "f32[8]"))
