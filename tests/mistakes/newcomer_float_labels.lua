local dc = require "deepc"
local nn = require "deepc.nn"

local logits = dc.zeros "f32[64, 10]"
local labels = dc.zeros "f32[64]"
print(nn.cross_entropy(logits, labels))
