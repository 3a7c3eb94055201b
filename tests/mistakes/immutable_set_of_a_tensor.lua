local dc = require "deepc"

local x = dc.zeros "f32[3]"
x:set(dc.ones "f32[3]")
