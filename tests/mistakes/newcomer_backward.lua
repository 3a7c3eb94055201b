local dc = require "deepc"
local nn = require "deepc.nn"

local net = nn.Linear(4, 1)
local loss = (net(dc.ones "f32[8, 4]") - 1):pow(2):mean()
loss:backward()
