local dc = require "deepc"

local x = dc.ones "f32[8, 3]"
print(dc.einsum("b i, i o -> b o", x))
