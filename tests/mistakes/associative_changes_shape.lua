local dc = require "deepc"

local h = dc.associative_scan(function(a, b)
  return (a + b):sum(1)
end, dc.ones "f32[6, 2]")
