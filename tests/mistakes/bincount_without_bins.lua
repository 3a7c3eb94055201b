-- As in NumPy, where the result has as many elements as the data needs.
local dc = require "deepc"

print(dc.bincount(dc.tensor({ 0, 1, 1 }, "i32"), {}))
