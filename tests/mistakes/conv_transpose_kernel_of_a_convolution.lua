local dc = require "deepc"

local up = dc.fn("up(x: f32[8, 64, 16, 16], w: f32[32, 64, 4, 4]) -> f32[8, 32, 32, 32]", function(x, w)
  return dc.conv_transpose2d(x, w, { stride = 2, padding = 1 })
end)
