local dc = require "deepc"

local x = dc.tensor { -1, 2, -3 }
local positive = x > 0
