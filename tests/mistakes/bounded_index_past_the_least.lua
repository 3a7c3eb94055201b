local dc = require "deepc"

local fourth = dc.fn("fourth(x: f32[t <= 512, 64])", function(x)
  return x[4]
end)

print(fourth(dc.zeros "f32[8, 64]"))
