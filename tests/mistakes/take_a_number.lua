local dc = require "deepc"

local words = dc.ones "f32[100, 16]"
print(words:take(3, 1))
