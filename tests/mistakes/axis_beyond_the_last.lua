local dc = require "deepc"

local a = dc.ones "f32[batch=32, 10]"
print(a:argmax(3))
