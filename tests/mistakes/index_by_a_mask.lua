local dc = require "deepc"

local x = dc.tensor { -1, 2, -3 }
print(x[x:gt(0)])
