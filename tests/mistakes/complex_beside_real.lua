local dc = require "deepc"

local z = dc.complex(dc.ones "f32[3]", dc.ones "f32[3]")
local window = dc.ones "f32[3]"
print(z * window)
