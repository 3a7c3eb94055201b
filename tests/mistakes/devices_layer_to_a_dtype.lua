local nn = require "deepc.nn"

local net = nn.Linear(4, 2)
net:to "bf16"
