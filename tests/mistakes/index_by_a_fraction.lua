local dc = require "deepc"

local v = dc.ones "f32[10]"
print(v[10 / 4])
