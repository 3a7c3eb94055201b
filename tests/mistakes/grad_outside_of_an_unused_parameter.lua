local dc = require "deepc"

local w, b = dc.param("f32[3]", 1), dc.param("f32[]", 0)
local loss = (dc.ones "f32[3]" * w):sum()
local g = dc.grad(loss, { w, b })
