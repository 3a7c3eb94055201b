local dc = require "deepc"
local f = dc.fn("scale(x: f32[4], y: f32[4]) -> f32[4]", function(x, y) return x * 2 + y end)
local x, y = dc.zeros "f32[4]", dc.ones "f32[4]"
print(f(x, y, mask))
