local dc = require "deepc"

local z = dc.zeros "f32[batch=32, 784]"
print(z:slice { bacth = { 1, 16 } })
