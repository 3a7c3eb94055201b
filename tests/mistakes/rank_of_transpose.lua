local dc = require "deepc"

local v = dc.ones "f32[3]"
print(v:transpose())
