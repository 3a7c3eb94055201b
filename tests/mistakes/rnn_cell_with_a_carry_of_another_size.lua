local dc = require "deepc"
local nn = require "deepc.nn"

local cell = nn.GRUCell(8, 16)
dc.scan(function(h, x)
  h = cell(x, h)
  return h, h
end, dc.zeros "f32[4, 8]", dc.zeros "f32[10, 4, 8]")
