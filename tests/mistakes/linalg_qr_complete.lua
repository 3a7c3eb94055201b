local dc = require "deepc"
local linalg = require "deepc.linalg"

return linalg.qr(dc.rand "f32[5, 3]", { mode = "complete" })
