local dc = require "deepc"

local x = dc.ones "f32[batch=2, features=3]"
local w = dc.ones "f32[inputs=3, outputs=4]"
print(x:matmul(w))
