local dc = require "deepc"

dc.send(dc.ones "f32[4]", { to = 1 })
