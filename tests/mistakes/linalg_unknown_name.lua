local dc = require "deepc"
local linalg = require "deepc.linalg"

return linalg.eig(dc.eye "f32[2, 2]")
