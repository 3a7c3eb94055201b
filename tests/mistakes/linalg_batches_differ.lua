local dc = require "deepc"
local linalg = require "deepc.linalg"
local a, b = dc.rand "f32[4, 3, 3]", dc.rand "f32[2, 3, 1]"

return linalg.solve(a, b)
