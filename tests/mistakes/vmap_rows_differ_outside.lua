local dc = require "deepc"

local dot = dc.vmap(function(a) return (a.x * a.y):sum() end)
print(dot { x = dc.ones "f32[3, 2]", y = dc.ones "f32[2, 3]" })
