-- run: deepc check
local dc = require "deepc"

local a = dc.zeros "f32[3]"
a:put({ 1 }, 5)
print(a)
