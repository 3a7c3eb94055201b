local dc = require "deepc"

local double = dc.vmap(function(a) return a * 2 end, { size = 4 })
print(double(dc.ones "f32[3, 2]"))
