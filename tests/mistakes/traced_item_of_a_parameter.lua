local dc = require "deepc"

local scale = dc.param("f32[]", 2)
local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  return x * scale:item()
end)
