local dc = require "deepc"

local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  return x * os.time()
end)
