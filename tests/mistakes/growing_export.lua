local dc = require "deepc"

local cache = dc.state "f32[0 <= t <= 8]"
local sum = dc.fn("sum() -> f32[]", function()
  return cache:sum()
end)
sum:export "sum.safetensors"
