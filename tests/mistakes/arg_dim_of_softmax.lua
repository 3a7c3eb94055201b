local dc = require "deepc"
local x = dc.ones "f32[10, 5]"
print(dc.softmax(x, { dim = 1 }))
