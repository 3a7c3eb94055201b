local dc = require "deepc"

local function step(c, x)
  if x:item() > 2 then
    return c
  end
  return { n = c.n + 1 }
end
print(dc.scan(step, { n = 0, sum = 0 }, dc.tensor { 1, 2, 3 }))
