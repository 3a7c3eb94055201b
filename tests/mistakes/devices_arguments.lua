local dc = require "deepc"

local add = dc.fn("add(x: f32[n], y: f32[n]) -> f32[n]", function(x, y) return x + y end)
local x = dc.tensor { 1, 2, 3 }
print(add(x, x:to "eval"))
