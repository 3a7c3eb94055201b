-- luacheck: ignore
local dc = require "deepc"
dc.check_numbers(true)

local slope = dc.fn("slope(x: f32[2]) -> f32[2]", function(x)
  local length = (x * x):sum():sqrt()
  return dc.grad(length, { x })[1]
end)
print(slope { 0, 0 })
