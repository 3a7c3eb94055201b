local dc = require "deepc"

local ids = dc.param("i32[10]", 0)
