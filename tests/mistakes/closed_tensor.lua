local dc = require "deepc"

local x = dc.ones "f32[1000]"
x:close()
print(x:sum())
