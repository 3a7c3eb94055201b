local dc = require "deepc"

local last
local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  last = x * 2
  return last
end)
print(last)
