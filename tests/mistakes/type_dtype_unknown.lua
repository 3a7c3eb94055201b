local dc = require "deepc"

local x = dc.zeros "float[64]"
