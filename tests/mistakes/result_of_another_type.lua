local dc = require "deepc"

local loss = dc.fn("loss(x: f32[64, 10]) -> f32[]", function(x)
  return (x * x):sum(2)
end)
