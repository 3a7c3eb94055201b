local dc = require "deepc"

local x = dc.ones "f32[3, 2]"
print(x:expand(3, 4))
