-- run: deepc check
local dc = require "deepc"
local a = dc.ones "f32[4]"
local same = a:allclose(a)
print(same:item())
