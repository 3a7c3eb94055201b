local dc = require "deepc"

local size = dc.fn("size(z: c64[n]) -> f32[n]", function(z)
  return z * z:conj()
end)
size(dc.zeros "c64[3]")
