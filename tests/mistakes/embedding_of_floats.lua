local dc = require "deepc"
local nn = require "deepc.nn"

local embed = nn.Embedding(10, 4)
embed(dc.tensor { 1, 2 })
