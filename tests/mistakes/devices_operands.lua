local dc = require "deepc"

local x = dc.tensor { 1, 2, 3 }
local y = x:to "eval"
print(x * y)
