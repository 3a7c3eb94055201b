local dc = require "deepc"

local a = dc.zeros(3, 4)
