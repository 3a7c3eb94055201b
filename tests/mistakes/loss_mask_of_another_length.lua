local dc = require "deepc"
local nn = require "deepc.nn"

local logits, labels = dc.zeros "f32[8, 3]", dc.zeros "i32[8]"
nn.cross_entropy(logits, labels, { mask = dc.ones "bool[3]" })
