local dc = require "deepc"
local nn = require "deepc.nn"

local Block = nn.class "Block"
function Block:init()
  self.lin = nn.Linear(4, 4)
end
local block = Block()
print(block(dc.ones "f32[1, 4]"))
