local dc = require "deepc"

local x = dc.ones "f32[64, 10]"
print(x:sum(0))
