local dc = require "deepc"

local f = dc.fn("f(x: f32[t <= 512, 6])", function(x)
  return x:reshape(-1, 4)
end)

print(f(dc.zeros "f32[8, 6]"))
