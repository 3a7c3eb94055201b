local dc = require "deepc"

local a, b = dc.ones "f32[batch=4, 2]", dc.ones "f32[batch=4, 3]"
print(a:gt(b))
