local dc = require "deepc"

local f = dc.fn("f(x: f32[n, 784]) -> f32[n]", function(x)
  return x:sum(2)
end)
print(f(dc.ones "f32[64, 783]"))
