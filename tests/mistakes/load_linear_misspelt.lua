-- One of two texts.
local dc = require "deepc"
local nn = require "deepc.nn"

dc.load("weights.safetensors", nn.Linear(8, 4), { linear = "oi" })
