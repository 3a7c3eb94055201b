local dc = require "deepc"

local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x:to "eval" * 2 end)
print(f { 1, 2, 3 })
