local dc = require "deepc"
print(dc.ones "f32[3]":len())
