local dc = require "deepc"

local x = dc.ones "f32[3]"
print(dc.ones("f32[]"):matmul(x))
