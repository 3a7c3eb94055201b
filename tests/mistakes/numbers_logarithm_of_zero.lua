-- luacheck: ignore
local dc = require "deepc"
dc.check_numbers(true)

local entropy = dc.fn("entropy(p: f32[2, 3]) -> f32[2]", function(p)
  local bits = p:log() / math.log(2)
  return -(p * bits):sum(2)
end)
print(entropy { { 0.5, 0.25, 0.25 }, { 0.5, 0.5, 0.0 } })
