local dc = require "deepc"
local nn = require "deepc.nn"

local gru = nn.GRU(8, 16, { layers = 2, bidirectional = true })
gru(dc.zeros "f32[10, 4, 8]", dc.zeros "f32[2, 4, 16]")
