local dc = require "deepc"

local x = dc.ones "f32[2, 3]"
print(x:pad())
