local nn = require "deepc.nn"
return nn.Conv2d(1, 8, 3, { kernel_size = 3 })
