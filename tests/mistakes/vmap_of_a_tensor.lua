local dc = require "deepc"

local y = dc.vmap(dc.ones "f32[3]")
