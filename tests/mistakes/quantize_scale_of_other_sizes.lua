local dc = require "deepc"
local nn = require "deepc.nn"

local codes, scales = dc.zeros "u8[10, 64]", dc.ones "f32[64]"
local layer = nn.QuantizedLinear(codes, "f8_e4m3", { scale = scales })
print(layer)
