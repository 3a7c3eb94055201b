local dc = require "deepc"

local w = dc.param("f32[3]", 1)
local x = dc.tensor({ 1, 2, 3 }):to "eval"
print(dc.grad((x * w:to "eval"):sum(), w))
