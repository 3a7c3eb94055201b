local dc = require "deepc"

local x = dc.tensor { true, false }
