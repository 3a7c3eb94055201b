local dc = require "deepc"

local x = dc.ones "f32[2, 2]"
print(x:reshape(1, 1, 1, 1, 1, 1, 1, 2, 2))
