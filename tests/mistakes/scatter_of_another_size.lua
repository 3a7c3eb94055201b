-- One index for each row, where scatter takes one for each element.
local dc = require "deepc"

local totals = dc.zeros "f32[10, 4]"
local spent = dc.ones "f32[3, 4]"
print(totals:scatter_add(dc.tensor({ 1, 7, 7 }, "i32"), spent, 1))
