local dc = require "deepc"

local p = dc.param("c64[3]", 1)
local step = dc.fn("step(z: c64[3]) -> f32[]", function(z)
  local loss = (p * z):sum()
  p:set(p - 0.1 * dc.grad(loss, p))
  return loss:abs()
end)
step(dc.ones "c64[3]")
