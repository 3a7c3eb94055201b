local dc = require "deepc"

local x = dc.iota "i32[n=5]"
print(x:reshape(-1, 1):eq(x:reshape(1, -1)))
