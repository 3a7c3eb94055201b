local dc = require "deepc"

local next_rate = coroutine.wrap(function()
  for i = 1, math.huge do
    coroutine.yield(1 / i)
  end
end)
local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  return x * next_rate()
end)
f { 1, 2, 3 }
f { 1, 2, 3 }
