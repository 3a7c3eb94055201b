local dc = require "deepc"

local draw = dc.vmap(function(scale) return dc.randn "f32[2]" * scale end)
print(draw(3))
