local dc = require "deepc"
local linalg = require "deepc.linalg"

return linalg.det(dc.zeros "c64[2, 2]")
