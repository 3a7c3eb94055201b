local dc = require "deepc"

local h = dc.state "f32[2, 2]"
h:set { { 1, 2 }, { 3 } }
