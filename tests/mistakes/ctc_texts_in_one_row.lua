local dc, nn = require "deepc", require "deepc.nn"

local log_probs = dc.zeros("f32[20, 2, 5]"):log_softmax(-1)
nn.ctc_loss(log_probs, dc.tensor({ 1, 2, 3, 4, 4 }, "i32"), nil, dc.tensor({ 3, 2 }, "i32"))
