-- luacheck: ignore
local dc = require "deepc"

SCALE = 2
local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  return x * SCALE
end)
for i = 1, 40 do
  f { 1, 2, 3 }
  SCALE = i > 2 and 3 or 2
end
