local dc = require "deepc"

local a, b = dc.ones "f32[2, 3, 4]", dc.ones "f32[5, 4, 3]"
print(a:matmul(b))
