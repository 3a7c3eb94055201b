-- run: deepc check
local dc = require "deepc"

-- outside typed functions a value may be kept for later
local f = dc.fn("f(a: f32[3]) -> f32[3]", function(a)
  a:put({ 1 }, 5)
  return a
end)
local a = f(dc.zeros "f32[3]")
a:put({ 1 }, 5)
print(a)
