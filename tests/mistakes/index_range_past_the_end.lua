local dc = require "deepc"

local rows = dc.ones "f32[batch=64, 10]"
print(rows:slice { batch = { 33, 65 } })
