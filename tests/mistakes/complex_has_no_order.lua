local dc = require "deepc"

local z = dc.complex(dc.tensor { 1, 2 }, dc.tensor { 4, -5 })
local best = z:argmax(1)
print(best)
