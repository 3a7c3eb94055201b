local dc = require "deepc"

local x = dc.ones "f32[batch=2, 3]"
print(x:mean("batch", true))
