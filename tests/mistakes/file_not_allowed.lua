-- env: DEEPC_ALLOW=compute
local dc = require "deepc"

local w = dc.param("f32[2, 2]", 1)
dc.save("w.safetensors", { w = w })
