local dc = require "deepc"
local nn = require "deepc.nn"

local step = dc.fn("step(x: f32[8], y: i32[8]) -> f32[]", function(x, y)
  return nn.bce_with_logits(x, y)
end)
