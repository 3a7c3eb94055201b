local dc = require "deepc"

dc.mesh { data = 1 }
dc.broadcast(dc.ones "f32[4]")
