local nn = require "deepc.nn"

local criterion = nn.CrossEntropyLoss()
