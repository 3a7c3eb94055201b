local dc = require "deepc"
print(dc.full({ 2, 2 }, 1))
