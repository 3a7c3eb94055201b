local dc = require "deepc"

local kept
local function keep(x)
  kept = { x }
  return x
end
dc.fn("f(x: f32[4]) -> f32[4]", function(x)
  local r = dc.cond(x:sum():gt(0), function() return keep(x:sqrt()) end, function() return x end)
  return r + kept[1]
end)
