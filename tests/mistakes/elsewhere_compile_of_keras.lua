local nn = require "deepc.nn"
local net = nn.Sequential { nn.Linear(4, 3) }
net:compile { optimizer = "adam" }
