local dc = require "deepc"
local linalg = require "deepc.linalg"

return linalg.eigvalsh(dc.tensor { 1, 2, 3 })
