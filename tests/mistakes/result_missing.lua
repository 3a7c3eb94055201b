local dc = require "deepc"

local f = dc.fn("f(x: f32[4]) -> f32[]", function(x)
  local y = x:sum()
end)
