local dc = require "deepc"

local a = dc.ones "f32[2, 3, 4]"
print(a:permute(1, 1, 3))
