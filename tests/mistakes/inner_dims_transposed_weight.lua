local dc = require "deepc"

local x = dc.ones "f32[8, 3]"
local w = dc.ones "f32[5, 3]"
print(x:matmul(w))
