local dc = require "deepc"

local f = dc.fn("f(x: f32[t <= 512, 64])", function(x)
  return dc.vmap(function(row) return row:softmax(1) end)(x)
end)

print(f(dc.zeros "f32[8, 64]"))
