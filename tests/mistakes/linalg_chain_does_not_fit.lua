local dc = require "deepc"
local linalg = require "deepc.linalg"

return linalg.multi_dot { dc.rand "f32[2, 3]", dc.rand "f32[3, 4]", dc.rand "f32[5]" }
