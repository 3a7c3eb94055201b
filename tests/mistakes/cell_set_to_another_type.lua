local dc = require "deepc"

local w = dc.param("f32[784, 10]", 0)
w:set(dc.zeros "f32[10, 784]")
