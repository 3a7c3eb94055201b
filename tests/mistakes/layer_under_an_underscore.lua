local dc, nn = require "deepc", require "deepc.nn"

local Net = nn.class "Net"
function Net:init()
  self._blocks = { nn.Linear(4, 4), nn.Linear(4, 4) }
end
function Net:forward(x) return self._blocks[1](x) end

local net = Net()
print(#net:parameters(), dc.ones "f32[1]")
