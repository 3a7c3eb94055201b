local dc = require "deepc"
print(dc.randn(2, 3))
