local dc = require "deepc"
local linalg = require "deepc.linalg"
local x = dc.rand "f32[batch=8, 20, 3]"

return linalg.inv(x)
