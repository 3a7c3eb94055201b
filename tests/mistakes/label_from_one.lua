local dc = require "deepc"
local nn = require "deepc.nn"

-- classes counted from 1, as positions are
local labels = dc.tensor({ 1, 2, 3 }, "i32")
print(nn.cross_entropy(dc.zeros "f32[3, 3]", labels))
