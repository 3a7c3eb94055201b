local dc = require "deepc"
print(dc.zeros({ 3, 4 }))
