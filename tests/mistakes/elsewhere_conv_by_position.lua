local nn = require "deepc.nn"
return nn.Conv2d(1, 8, 3, 1, 1)
