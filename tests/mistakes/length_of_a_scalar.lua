local dc = require "deepc"

local x = dc.ones "f32[]"
print(#x)
