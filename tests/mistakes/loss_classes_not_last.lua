local dc, nn = require "deepc", require "deepc.nn"

nn.cross_entropy(dc.ones "f32[2, 10, 8, 8]", dc.zeros "i32[2, 8, 8]")
