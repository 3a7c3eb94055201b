local dc = require "deepc"
local linalg = require "deepc.linalg"

linalg.qr(dc.ones "f32[5, 3]", { mode = "economic" })
