-- run: deepc check
local dc = require "deepc"

local f = dc.fn("f(x: f32[4, 3], w: f32[4, 2]) -> f32[4, 2]", function(x, w)
  return x:matmul(w)
end)
