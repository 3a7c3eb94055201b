local dc = require "deepc"

local slope = dc.fn("slope(x: f32[2 <= t <= 512]) -> f32[]", function(x)
  return x[-1] - x[-2]
end)
local double = dc.fn("double(x: f32[t <= 512]) -> f32[]", function(x)
  return slope(x) * 2
end)

print(double(dc.zeros "f32[8]"))
