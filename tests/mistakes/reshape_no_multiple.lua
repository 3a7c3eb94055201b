local dc = require "deepc"

local x = dc.ones "f32[10]"
print(x:reshape(3, -1))
