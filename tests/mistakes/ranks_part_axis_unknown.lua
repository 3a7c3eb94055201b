local dc = require "deepc"

dc.mesh { data = 1 }
dc.part(dc.ones "f32[30, 10]", "f32[30, 10 @ model]")
