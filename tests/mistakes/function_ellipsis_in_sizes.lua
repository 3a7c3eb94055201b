local dc = require "deepc"

local f = dc.fn("f(x: f32[..., 3, ...]) -> f32[]", function(x)
  return x:sum()
end)
