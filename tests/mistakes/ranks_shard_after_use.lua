local dc = require "deepc"

dc.mesh { model = 1 }
local w = dc.param "f32[8, 4]"
local f = dc.fn("f(x: f32[8]) -> f32[4]", function(x) return x:matmul(w) end)
f(dc.ones "f32[8]")
dc.shard(w, "[8, 4 @ model]")
