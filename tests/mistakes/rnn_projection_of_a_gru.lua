local nn = require "deepc.nn"

nn.GRU(8, 16, { proj_size = 4 })
