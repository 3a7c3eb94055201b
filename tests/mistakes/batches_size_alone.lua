local dc = require "deepc"
local data = require "deepc.data"

local set = data.set(dc.ones "f32[100, 4]", dc.zeros "i32[100]")
for x, y in set:batches(50) do
  print(x, y)
end
