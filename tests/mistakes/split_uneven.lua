local dc = require "deepc"

local x = dc.ones "f32[10, 3]"
print(x:split(4, 1))
