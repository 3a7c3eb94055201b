local dc = require "deepc"

local m = dc.ones "f32[4, 4]"
print(m[{ 1, 2, 3 }])
