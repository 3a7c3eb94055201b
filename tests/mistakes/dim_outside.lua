local dc = require "deepc"

print(dc.dim "batch")
