-- run: deepc check
local dc = require "deepc"

dc.mesh { model = 4 }
dc.shard(dc.param "f32[784, 10]", "[784, 10 @ model]")
