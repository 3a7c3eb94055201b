-- PyTorch's word for it.
local dc = require "deepc"

local x = dc.zeros "f32[4]"
print(x:scatter({ 0, 0 }, dc.tensor { 1, 2 }, 1, { reduce = "amax" }))
