local dc = require "deepc"

local q = dc.ones "f32[batch=2, time=5]"
local k = dc.ones "f32[batch=2, space=5]"
print(q + k)
