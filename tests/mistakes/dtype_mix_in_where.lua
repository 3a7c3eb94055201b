local dc = require "deepc"

local x = dc.ones "f32[3]"
local n = dc.ones "i32[3]"
local y = dc.where(x:gt(0), x, n)
