local dc = require "deepc"

local m = dc.tensor { 1, 2, "three" }
