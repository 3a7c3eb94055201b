local dc = require "deepc"
local nn = require "deepc.nn"

local Cell = nn.class "Cell"
function Cell:init() self.linear = nn.Linear(4, 4) end
function Cell:forward(h)
  self.last = self.linear(h):tanh()
  return self.last
end
local cell = Cell()
dc.fn("f(xs: f32[10, 4]) -> f32[4], f32[4]", function(xs)
  local h = dc.scan(function(h, x) return cell(h + x) end, dc.zeros "f32[4]", xs)
  return h, cell.last * 2
end)
