local dc = require "deepc"
local x = dc.zeros "f32[64, 784]"
local n = x:shape()[1]
