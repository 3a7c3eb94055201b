-- More elements than there is room for.
local dc = require "deepc"

local scores = dc.tensor { 0.9, 0.2, 0.8, 0.7 }
local kept, count = scores:compact(scores:gt(0.5), { bound = 2 })
print(kept, count)
