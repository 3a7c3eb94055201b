local dc = require "deepc"

local x = dc.randint("i32[3]", { low = 5, high = 5 })
