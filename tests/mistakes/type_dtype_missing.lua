local dc = require "deepc"

local x = dc.zeros "[64, 784]"
