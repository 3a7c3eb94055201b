local dc, nn = require "deepc", require "deepc.nn"

local Block = nn.class "Block"
function Block:init() self.inner = nn.Linear(4, 4) end
function Block:forward(x)
  local y = self.inner(x):relu()
end

local net = Block()
dc.fn("f(x: f32[2, 4]) -> f32[2, 4]", function(x) return net(x) end)
