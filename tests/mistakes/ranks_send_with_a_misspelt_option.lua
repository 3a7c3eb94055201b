local dc = require "deepc"

dc.mesh { pipe = 1 }
dc.send(dc.ones "f32[4]", { To = 1 })
