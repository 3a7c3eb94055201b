local dc = require "deepc"
local data = require "deepc.data"

local set = data.set(dc.ones "f32[6, 2]", dc.zeros "i32[6]")
local first
for x in set:batches { size = 2 } do
  first = first or x
end
print(first:mean())
