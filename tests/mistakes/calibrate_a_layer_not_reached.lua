local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Sequential { nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10) }
nn.quantize(net, "q8_0", { activations = 8 })
nn.calibrate(net, { dc.ones "f32[4, 32]" }, { call = function(part, x) return part[1](x) end })
