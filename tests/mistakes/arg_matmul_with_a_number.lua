local dc = require "deepc"

local a = dc.ones "f32[3, 3]"
local b = a:matmul(2)
