local dc = require "deepc"

local x, w = dc.ones "f32[batch=8, 3]", dc.ones "f32[4, 5]"
print(dc.einsum("b i, i o -> b o", x, w))
