local dc = require "deepc"
local nn = require "deepc.nn"

local Block = nn.class "Block"
function Block:init(n)
  self.up, self.down = nn.Linear(n, 4 * n), nn.Linear(n, n)
end
function Block:forward(x)
  return x + self.down(self.up(x))
end
local net = nn.Sequential { Block(4), Block(4) }
print(net(dc.ones "f32[1, 4]"))
