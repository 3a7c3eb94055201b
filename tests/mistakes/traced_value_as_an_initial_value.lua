local dc = require "deepc"

local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  local h = dc.state("f32[3]", x * 2)
  return h + 1
end)
