local nn = require "deepc.nn"
return nn.MaxPool2d(2, 2)
