local dc = require "deepc"

local s = dc.scope()
local x = dc.ones "f32[3]" * 2
s:close()
print(x + 1)
