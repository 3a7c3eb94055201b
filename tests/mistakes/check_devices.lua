-- run: deepc check
local dc = require "deepc"

local x = dc.tensor { 1, 2, 3 }
local double = dc.fn("double(x: f32[n]) -> f32[n]", function(x) return x * 2 end)
local y = double(x:to "cuda:3")
print(y:to "cpu" + x)
print(y + x)
