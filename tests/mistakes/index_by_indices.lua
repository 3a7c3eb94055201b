local dc = require "deepc"

local rows = dc.ones "f32[10, 3]"
local order = dc.tensor({ 2, 0, 1 }, "i32")
print(rows[order])
