local dc = require "deepc"
local linalg = require "deepc.linalg"

return linalg.matrix_power(dc.eye "f32[2, 2]", 0.5)
