local dc, nn = require "deepc", require "deepc.nn"

local logits, labels = dc.zeros "f32[2, 3]", dc.tensor({ { 0, 1, 0 }, { 1, 0, 0 } }, "i32")
local loss = nn.cross_entropy(logits, labels)
