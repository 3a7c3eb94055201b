local dc = require "deepc"

print(dc.stack {})
