local dc = require "deepc"

local x = dc.randn("f32[batch=64, 784]", { seed = 1 })
local w = dc.param("f32[784, 10]", dc.randn("f32[784, 10]", { seed = 2 }))

local scores = x * w
