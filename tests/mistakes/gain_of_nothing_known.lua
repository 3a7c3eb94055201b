local nn = require "deepc.nn"

nn.init.kaiming_normal("f32[784, 128]", { gain = "swish" })
