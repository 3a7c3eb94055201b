local dc = require "deepc"
local metrics = require "deepc.metrics"

local probability, labels = dc.tensor { 0.2, 0.9 }, dc.tensor({ 0, 1 }, "i32")
print(metrics.accuracy(probability, labels))
