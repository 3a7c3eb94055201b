local dc = require "deepc"

print(dc.ones "f32[2, 3]":cumsum())
