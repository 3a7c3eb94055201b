local dc = require "deepc"

local n = dc.ones "i32[3]"
print(n * 0.5)
