local dc = require "deepc"

local x = dc.ones "f32[12]"
print(x:reshape(-1, -1))
