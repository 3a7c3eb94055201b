local dc = require "deepc"

local x = dc.ones "f32[3]"
local y = x * 2
print(y)
local g = dc.grad(y:sum(), x)
