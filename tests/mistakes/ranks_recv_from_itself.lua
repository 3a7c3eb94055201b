local dc = require "deepc"

dc.mesh { pipe = 1 }
print(dc.recv("f32[4]", { from = 0, over = "pipe" }))
