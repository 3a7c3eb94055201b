-- The third value of a data set has fewer rows than the others.
local dc = require "deepc"
local data = require "deepc.data"
local images, labels = dc.zeros "u8[60, 28, 28]", dc.zeros "i32[60]"
data.set(images, labels, dc.ones "f32[50]")
