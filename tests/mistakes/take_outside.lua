local dc = require "deepc"

local words = dc.ones "f32[100, 16]"
local ids = dc.tensor({ 3, 100 }, "i32")
print(words:take(ids, 1))
