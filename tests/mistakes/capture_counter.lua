local dc = require "deepc"

local count = { n = 0 }
local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  count.n = count.n + 1
  return x * count.n
end)
print(f { 1, 2, 3 })
print(f { 1, 2, 3 })
