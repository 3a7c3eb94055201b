local dc = require "deepc"

local w = dc.param("f32[3]", 1)
local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  return dc.grad((x * w):sum(), w, { unused = "zeros" })
end)
