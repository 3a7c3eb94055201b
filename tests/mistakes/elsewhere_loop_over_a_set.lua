local dc, data = require "deepc", require "deepc.data"
local set = data.set(dc.ones "f32[8, 2]")
for x in set do print(x) end
