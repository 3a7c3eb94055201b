local dc = require "deepc"

local h = dc.associative_scan(function(a, b) return a + b end, dc.ones "f32[]")
