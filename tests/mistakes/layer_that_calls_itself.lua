local dc = require "deepc"
local nn = require "deepc.nn"

local Block = nn.class "Block"

function Block:init()
  self.lin = nn.Linear(3, 3)
end

function Block:forward(x)
  return self(self.lin(x))
end

local net = Block()
dc.fn("f(x: f32[2, 3]) -> f32[2, 3]", function(x)
  return net(x)
end)
