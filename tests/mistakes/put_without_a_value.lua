local dc = require "deepc"

local a = dc.zeros "f32[4, 3]"
print(a:put { 1, 5 })
