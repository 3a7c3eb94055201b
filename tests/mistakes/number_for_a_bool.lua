local dc = require "deepc"

local mask = dc.tensor({ 1, 0, 1 }, "bool")
