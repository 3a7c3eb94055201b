local dc = require "deepc"
local nn = require "deepc.nn"

local y, indices = dc.max_pool2d(dc.ones "f32[1, 1, 8, 8]", 2, { return_indices = true })
nn.MaxUnpool2d(2)(y, indices, { output_size = { 8, 10 } })
