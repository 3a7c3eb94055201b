local dc = require "deepc"
local nn = require "deepc.nn"

dc.mesh { data = 1 }
dc.shard(nn.Linear(4, 2), { "[4, 2 @ data]" })
