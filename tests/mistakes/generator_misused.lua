local dc = require "deepc"

local x = dc.rand("f32[3]", { seed = "today" })
