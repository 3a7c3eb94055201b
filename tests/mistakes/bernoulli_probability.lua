local dc = require "deepc"

local keep = dc.bernoulli("bool[3]", { p = 1.5 })
