local dc = require "deepc"

local a, b = dc.ones "f32[3]", dc.ones "f32[3]"
print(a & b)
