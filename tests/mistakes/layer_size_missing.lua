local nn = require "deepc.nn"

local layer = nn.Linear(784)
