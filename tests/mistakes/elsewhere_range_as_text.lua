local dc = require "deepc"
print((dc.iota "f32[6]")["1:3"])
