local dc = require "deepc"

local x = dc.ones "f32[32, 10]"
local bias = dc.ones "f32[32]"
local y = x + bias
