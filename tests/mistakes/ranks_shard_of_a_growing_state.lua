local dc = require "deepc"

dc.mesh { model = 1 }
dc.shard(dc.state "f32[0 <= t <= 8, 4]", "[t, 4 @ model]")
