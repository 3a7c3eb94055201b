local dc = require "deepc"

local x = dc.ones "f32[batch=32, 10]"
local mean = dc.ones "f32[batch=1, 10]"
print(x - mean)
