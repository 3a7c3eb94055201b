local dc, nn = require "deepc", require "deepc.nn"

dc.mesh { model = 1 }
local net = nn.Linear(8, 4)
dc.shard(net, { ["*.weights"] = "[8, 4 @ model]" })
