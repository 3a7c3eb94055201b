local dc = require "deepc"

local cache = dc.state "f32[2 <= t <= 8]"
cache:set { 1 }
