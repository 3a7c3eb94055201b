-- run: deepc check
local dc = require "deepc"
local a, b = dc.ones "f32[2, 3]", dc.ones "f32[3, 4]"
print(a @ b)
