local nn = require "deepc.nn"
return nn:Linear(784, 10)
