local dc = require "deepc"

local x = dc.tensor({ 1, -1 }, "u8")
