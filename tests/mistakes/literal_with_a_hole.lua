local dc = require "deepc"

local m = dc.tensor({ 1, nil, 3 }, "f32[3]")
