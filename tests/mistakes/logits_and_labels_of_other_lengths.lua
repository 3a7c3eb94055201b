local dc = require "deepc"
local nn = require "deepc.nn"

local logits, labels = dc.ones "f32[8, 3]", dc.zeros "i32[7]"
print(nn.cross_entropy(logits, labels))
