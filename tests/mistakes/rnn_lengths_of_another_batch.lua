local dc = require "deepc"
local nn = require "deepc.nn"

local rnn = nn.RNN(8, 16)
rnn(dc.zeros "f32[10, 4, 8]", nil, { lengths = dc.tensor({ 10, 3, 9 }, "i32") })
