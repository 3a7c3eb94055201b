local nn = require "deepc.nn"

local norm = nn.GroupNorm(32, 8)
