local dc = require "deepc"
local linalg = require "deepc.linalg"
local a, b = dc.eye "f32[3, 3]", dc.rand "f32[5, 3]"

return linalg.solve(a, b)
