-- run: script
local dc, nn = require "deepc", require "deepc.nn"
print(nn.Flatten(1)(dc.ones "f32[2, 3, 4]").shape)
