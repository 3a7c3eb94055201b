local optim = require "deepc.optim"

local opt = optim.SGD({}, { lr = 0.1 })
