local dc = require "deepc"

local w = dc.param("f32[4]", 1)
local forward = dc.fn("forward(x: f32[4]) -> f32[]", function(x)
  return (x * w):sum()
end)

local g = dc.grad(forward(dc.ones "f32[4]"), { w })
