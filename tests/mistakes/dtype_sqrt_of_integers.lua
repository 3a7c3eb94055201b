local dc = require "deepc"

local n = dc.tensor({ 1, 4, 9 }, "i32")
print(n:sqrt())
