local dc = require "deepc"

local mask = dc.tensor { 1, 0, 1 }
print(dc.where(mask, 1, 0))
