local dc = require "deepc"
print(dc.randint(0, 10, { 5 }))
