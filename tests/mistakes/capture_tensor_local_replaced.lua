local dc = require "deepc"

local mean = dc.zeros "f32[3]"
local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  return x - mean
end)
print(f { 1, 2, 3 })
mean = dc.ones "f32[3]"
print(f { 1, 2, 3 })
