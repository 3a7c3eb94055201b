local dc = require "deepc"
local nn = require "deepc.nn"

local pool, unpool = nn.MaxPool2d(2), nn.MaxUnpool2d(2)
unpool(pool(dc.ones "f32[1, 1, 8, 8]"))
