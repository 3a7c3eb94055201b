local dc = require "deepc"

local x = dc.ones "f32[4, 3]"
print(dc.where(dc.ones("f32[4]"):gt(0), x, 0))
