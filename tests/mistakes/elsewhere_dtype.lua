local dc = require "deepc"
print(dc.zeros "float32[3]")
