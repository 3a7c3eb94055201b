local dc = require "deepc"
local nn = require "deepc.nn"

local gru = nn.GRU(8, 16)
local f = dc.fn("f(x: f32[10, 4, 8], lengths: i32[4]) -> f32[]", function(x, lengths)
  local y = gru(x, nil, { lengths = lengths })
  return y:sum()
end)
print(f(dc.zeros "f32[10, 4, 8]", dc.tensor({ 10, 3, 11, 5 }, "i32")))
