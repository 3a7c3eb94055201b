local dc = require "deepc"

local f = dc.fn("f(x: f32[4000000000], y: f32[4000000000, 1]) -> f32[]", function(x, y)
  return (x - y):abs():mean()
end)
