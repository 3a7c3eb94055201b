local dc = require "deepc"
local linalg = require "deepc.linalg"
local a, b = dc.eye "f64[3, 3]", dc.rand "f32[3]"

return linalg.lstsq(a, b)
