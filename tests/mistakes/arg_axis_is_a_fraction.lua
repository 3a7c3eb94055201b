local dc = require "deepc"

local a = dc.ones "f32[3, 4]"
print(a:mean(1.5))
