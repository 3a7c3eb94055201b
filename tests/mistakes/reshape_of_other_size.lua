local dc = require "deepc"

local x = dc.ones "f32[batch=32, 784]"
print(x:reshape(32, 28, 29))
