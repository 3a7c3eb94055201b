local dc = require "deepc"

local a, b = dc.ones "f32[2, 3]", dc.ones "f32[4, 3]"
print(dc.concat(a, b))
