local dc = require "deepc"

local rows = dc.ones "f32[64, 10]"
print(rows[{ { 16, 1 } }])
