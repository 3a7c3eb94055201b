local dc = require "deepc"

local state = { h = dc.zeros "f32[64, 128]" }
local rnn = dc.fn("rnn(x: f32[64, 128]) -> f32[64, 128]", function(x)
  return (state.h + x):tanh()
end)

local x = dc.ones "f32[64, 128]"
for _ = 1, 40 do
  state.h = rnn(x)
end
