-- run: deepc check
local dc = require "deepc"

dc.mesh { data = 4 }
local double = dc.fn("double(x: f32[32 @ data, 10]) -> f32[32 @ data, 10]", function(x)
  return x * 2
end)
double(dc.ones "f32[32, 10]")
