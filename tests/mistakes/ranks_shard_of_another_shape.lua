local dc = require "deepc"

dc.mesh { model = 1 }
dc.shard(dc.param "f32[8, 4]", "[4 @ model, 8]")
