local dc = require "deepc"

local counts = dc.zeros "i32[4]"
print(counts:put({ 1 }, dc.ones "f32[]"))
