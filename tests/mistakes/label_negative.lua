local dc = require "deepc"
local nn = require "deepc.nn"

local labels = dc.tensor({ 0, 1, -1 }, "i32")
print(nn.cross_entropy(dc.zeros "f32[3, 2]", labels))
