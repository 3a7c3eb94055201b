local dc = require "deepc"

local total = dc.fn("total(x: f32[t <= 512, 64]) -> f32[64]", function(x)
  return x:sum(1)
end)

print(total(dc.zeros "f32[0, 64]"))
