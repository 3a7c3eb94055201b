local nn = require "deepc.nn"
local optim = require "deepc.optim"

local body, head = nn.Linear(4, 8), nn.Linear(8, 2)
local opt = optim.SGD({ { params = body:parameters() }, { head:parameters(), lr = 1e-3 } }, { lr = 1e-2 })
