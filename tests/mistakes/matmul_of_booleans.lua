local dc = require "deepc"

local a = dc.ones("f32[2, 2]"):gt(0)
print(a:matmul(a))
