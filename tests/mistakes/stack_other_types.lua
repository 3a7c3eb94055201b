local dc = require "deepc"

local rows = { dc.ones "f32[3]", dc.ones "f32[4]" }
print(dc.stack(rows))
