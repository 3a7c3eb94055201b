local dc = require "deepc"

local n = 0
print(dc.map(function(x)
  n = n + 1
  return dc.ones(("f32[%d]"):format(n)) * x
end, dc.tensor { 1, 2, 3 }))
