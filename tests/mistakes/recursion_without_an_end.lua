local dc = require "deepc"

local function power(x, n)
  return power(x, n - 1) * x
end

dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  return power(x, 3)
end)
