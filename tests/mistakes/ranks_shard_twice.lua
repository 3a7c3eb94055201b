local dc = require "deepc"

dc.mesh { model = 1 }
local w = dc.param "f32[8, 4]"
dc.shard(w, "[8, 4 @ model]")
dc.shard(w, "[8 @ model, 4]")
