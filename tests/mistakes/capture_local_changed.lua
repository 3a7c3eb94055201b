local dc = require "deepc"

local scale = 2
local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  return x * scale
end)
print(f { 1, 2, 3 })
scale = 3
print(f { 1, 2, 3 })
