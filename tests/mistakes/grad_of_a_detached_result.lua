local dc = require "deepc"

local w = dc.param("f32[3]", 1)
local double = dc.fn("double(x: f32[3]) -> f32[3]", function(x)
  return x * w
end)
local y = double { 1, 2, 3 }
local g = dc.grad((y * y):sum(), w)
