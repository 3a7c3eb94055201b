local dc = require "deepc"

print(dc.zeros("f32[3]", 5))
