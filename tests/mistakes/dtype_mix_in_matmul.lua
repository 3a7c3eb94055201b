local dc = require "deepc"

local x = dc.ones "f32[2, 3]"
local onehot = dc.ones "i32[3, 4]"
local y = x:matmul(onehot)
