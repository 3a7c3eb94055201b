local dc = require "deepc"

local a, b = dc.ones "f32[4, 3]", dc.ones "f32[4, 2]"
print(a - b)
