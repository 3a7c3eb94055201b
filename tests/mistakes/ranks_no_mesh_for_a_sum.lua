local dc = require "deepc"

dc.all_reduce(dc.ones "f32[4]")
