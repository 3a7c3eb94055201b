-- run: script
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local Scaled = nn.class "Scaled"
function Scaled:init(n)
  self.inner = nn.Linear(n, n)
  self.scale = dc.ones(("f32[%d]"):format(n))
  self.order = dc.iota(n) -- positions need no training
end
function Scaled:forward(x) return self.inner(x) * self.scale end

local net = nn.Sequential { Scaled(4), nn.Linear(4, 2) }
local opt = optim.SGD(net:parameters(), { lr = 0.1 })
print(#opt.params, #net:parameters())
