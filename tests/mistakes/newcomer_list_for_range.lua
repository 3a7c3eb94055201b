local dc = require "deepc"

local v = dc.tensor { 1, 2, 3, 4, 5 }
print(v[{ 2, 3 }])
