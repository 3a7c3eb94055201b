local dc = require "deepc"

local double = dc.vmap(function(a) return a * 2 end, { in_axes = { 1, false } })
print(double(dc.tensor { 1, 2, 3 }))
