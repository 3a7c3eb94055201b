local dc = require "deepc"

local f = dc.fn("f(x: f32[n]) -> f32[]", function(x)
  return x:sum()
end, nil, { limit = 3 })
for n = 1, 10 do
  f(dc.ones(("f32[%d]"):format(n)))
end
