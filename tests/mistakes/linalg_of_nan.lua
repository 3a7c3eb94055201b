local dc = require "deepc"
local linalg = require "deepc.linalg"
local a = dc.zeros "f32[3, 2, 2]" / dc.tensor({ 1, 0, 1 }):reshape(3, 1, 1)

return linalg.svd(a)
