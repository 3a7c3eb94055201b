local dc = require "deepc"
local data = require "deepc.data"

local x, y, weight = dc.zeros "f32[8, 2]", dc.zeros "i32[8]", dc.ones "f32[8]"
local set = data.set(x, y, weight)
print(#set)
