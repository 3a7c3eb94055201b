local dc = require "deepc"

local f = dc.fn("f(x: f32[1, 3, t <= 512], w: f32[8, 3, 5])", function(x, w)
  return dc.conv1d(x, w)
end)

print(f(dc.zeros "f32[1, 3, 40]", dc.zeros "f32[8, 3, 5]"))
