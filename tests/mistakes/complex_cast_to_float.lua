local dc = require "deepc"

local step = dc.fn("step(z: c64[n]) -> f32[n]", function(z)
  return z:cast "f32"
end)
step(dc.zeros "c64[3]")
