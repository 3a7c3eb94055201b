local dc = require "deepc"

local a = dc.ones "f32[n=3, n=3]"
print(a:sum "n")
