local nn = require "deepc.nn"
local optim = require "deepc.optim"

local body, head = nn.Linear(4, 8), nn.Linear(8, 2)
local opt = optim.SGD({ { params = body:parameters() }, { params = head:parameters(), lr = 1e-3 } })
opt.groups[1].lr = 1e-4
