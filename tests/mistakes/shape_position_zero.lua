local dc = require "deepc"
local x = dc.zeros "f32[64, 784]"
print(x.shape[0])
