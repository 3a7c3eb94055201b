local dc = require "deepc"

local cache = {}
local f = dc.fn("f(x: f32[3]) -> f32[]", function(x)
  cache.hidden = (x * 2):tanh()
  return cache.hidden:sum()
end)
print(f(dc.ones "f32[3]"))
print(cache.hidden:mean())
