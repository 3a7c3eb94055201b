local dc = require "deepc"

local a = dc.ones "f32[2, 3, 4]"
print(a:sum { 1, 3, -1 })
