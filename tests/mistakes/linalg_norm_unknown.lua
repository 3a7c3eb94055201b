local dc = require "deepc"
local linalg = require "deepc.linalg"

return linalg.matrix_norm(dc.rand "f32[2, 3]", "frobenius")
