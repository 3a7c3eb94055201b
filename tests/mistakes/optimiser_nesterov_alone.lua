local nn = require "deepc.nn"
local optim = require "deepc.optim"

local net = nn.Linear(4, 2)
local opt = optim.SGD(net:parameters(), { nesterov = true })
return opt
