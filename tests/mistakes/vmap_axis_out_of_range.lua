local dc = require "deepc"

local sum = dc.vmap(function(a) return a:sum() end, { in_axes = 3 })
print(sum(dc.ones "f32[3, 2]"))
