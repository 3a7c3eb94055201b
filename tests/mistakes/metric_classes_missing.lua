local dc = require "deepc"
local metrics = require "deepc.metrics"

local predicted, labels = dc.tensor({ 0, 1 }, "i32"), dc.tensor({ 0, 1 }, "i32")
print(metrics.f1(predicted, labels))
