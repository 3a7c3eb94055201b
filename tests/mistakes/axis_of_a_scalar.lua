local dc = require "deepc"

local a = dc.ones "f32[]"
print(a:sum(1))
