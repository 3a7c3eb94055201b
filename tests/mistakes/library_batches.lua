local dc, data = require "deepc", require "deepc.data"
local x, y = dc.ones "f32[100, 4]", dc.zeros "i32[100]"
for bx, by in data.batches({ x, y }, { size = 10, shuffle = true }) do print(bx, by) end
