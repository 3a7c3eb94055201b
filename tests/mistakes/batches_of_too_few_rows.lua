local dc = require "deepc"
local data = require "deepc.data"

local set = data.set(dc.ones "f32[48, 2]", dc.zeros "i32[48]")
for x, y in set:batches { size = 64, shuffle = true, last = "drop" } do
  print(x, y)
end
