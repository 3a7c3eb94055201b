local dc = require "deepc"
local nn = require "deepc.nn"

local drop = nn.Dropout(1.5)
print(drop(dc.ones "f32[4]"))
