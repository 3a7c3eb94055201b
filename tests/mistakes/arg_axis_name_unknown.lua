local dc = require "deepc"

local a = dc.ones "f32[batch=3, 4]"
print(a:mean "bach")
