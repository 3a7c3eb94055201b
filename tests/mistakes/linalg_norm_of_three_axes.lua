local dc = require "deepc"
local linalg = require "deepc.linalg"

return linalg.norm(dc.rand "f32[2, 3, 4]", 1)
