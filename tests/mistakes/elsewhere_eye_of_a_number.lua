local dc = require "deepc"
print(dc.eye(3))
