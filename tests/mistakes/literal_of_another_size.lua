local dc = require "deepc"

local labels = dc.tensor({ 7, 2, 1 }, "i32[4]")
