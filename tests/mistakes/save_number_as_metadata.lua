local dc, nn = require "deepc", require "deepc.nn"

dc.save("/tmp/net.safetensors", nn.Linear(784, 10), { epoch = 5 })
