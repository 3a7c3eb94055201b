-- Metrics: what the files of metrics/ put together.

local metrics = require "deepc.metrics.class"
local _, core = ...

require "deepc.nn" -- what checks labels
require "deepc.metrics.classes"
require "deepc.metrics.numbers"
require "deepc.metrics.ranking"
require "deepc.metrics.text"

return core.module("deepc.metrics", metrics)
