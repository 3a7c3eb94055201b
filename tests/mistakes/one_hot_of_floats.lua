local dc = require "deepc"

local labels = dc.tensor { 1, 2 }
print(dc.one_hot(labels, 10))
