local dc = require "deepc"

local _ = dc.state "f32[4, t <= 512]"
