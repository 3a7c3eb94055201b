local dc = require "deepc"

local loss = dc.ones "f32[]"
print(loss[1])
