local dc = require "deepc"
local nn = require "deepc.nn"

local bn = nn.BatchNorm2d(2)
dc.fn("f(x: f32[3, 4, 2, 5, 5]) -> f32[3, 4, 2, 5, 5]", function(x)
  return dc.vmap(function(a) return bn(a) end)(x)
end)
