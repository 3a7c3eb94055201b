local dc = require "deepc"

local w = dc.param("f32[4]", 1)
local total = 0
local step = dc.fn("step(x: f32[4]) -> f32[]", function(x)
  local loss = (x * w):sum()
  total = total + loss
  return loss
end)
