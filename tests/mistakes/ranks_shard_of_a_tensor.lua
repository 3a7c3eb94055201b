local dc = require "deepc"

dc.mesh { model = 1 }
dc.shard(dc.ones "f32[8, 4]", "[8, 4 @ model]")
