-- run: script
local dc = require "deepc"
local labels, logits = dc.ones "f32[8]", dc.ones "f32[8, 1]"
print("right: " .. labels:eq(logits):cast "f32":sum() .. " of 8")
-- A mask is made in this way, of other sizes.
print(dc.iota(5):lt(dc.tensor({ { 2 }, { 3 } }, "i32")).shape)
