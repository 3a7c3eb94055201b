local dc = require "deepc"

local m = dc.tensor { { 1, 2, 3 }, { 4, 5 }, { 6, 7, 8 } }
