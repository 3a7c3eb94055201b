local dc = require "deepc"
local nn = require "deepc.nn"

local lstm = nn.LSTM(8, 16)
local h = dc.zeros "f32[1, 4, 16]"
local f = dc.fn("f(x: f32[10, 4, 8]) -> f32[10, 4, 16]", function(x)
  return (lstm(x, { h, h }))
end)
print(f)
