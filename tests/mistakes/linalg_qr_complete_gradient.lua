local dc = require "deepc"
local linalg = require "deepc.linalg"

local a = dc.param "f32[5, 3]"
local q, r = linalg.qr(a, { mode = "complete" })
dc.grad(r:square():sum(), a)
