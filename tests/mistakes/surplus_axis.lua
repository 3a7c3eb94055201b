local dc = require "deepc"

local x = dc.ones "f32[2, 3, 4]"
print(x:sum(1, 2))
