local dc = require "deepc"

local x, w = dc.ones "f32[8, 3]", dc.ones "f32[3, 4]"
print(dc.einsum("b i, i o -> b p", x, w))
