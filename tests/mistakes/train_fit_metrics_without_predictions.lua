local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data, train, metrics = require "deepc.data", require "deepc.train", require "deepc.metrics"

local net = nn.Linear(4, 2)
local set = data.set(dc.ones "f32[10, 4]", dc.zeros "i32[10]")
train.fit { model = net, optimizer = optim.SGD(net:parameters()), data = set, batch = 5, epochs = 3, progress = false,
  metrics = { accuracy = metrics.Accuracy() },
  loss = function(x, y) return nn.cross_entropy(net(x), y) end }
