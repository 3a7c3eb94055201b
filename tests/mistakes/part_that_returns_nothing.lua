local dc, nn = require "deepc", require "deepc.nn"

local net = nn.Sequential { nn.Linear(4, 4), function(x) local y = x * 2 end, nn.Linear(4, 2) }
net(dc.ones "f32[2, 4]")
