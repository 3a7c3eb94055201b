local nn = require "deepc.nn"
return nn.Dropout { p = 0.5 }
