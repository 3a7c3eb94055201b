local dc = require "deepc"

local first = dc.fn("first(x: f32[t <= 512, 64])", function(x)
  if x:size(1) > 4 then
    return x[4]
  end
  return x[1]
end)

print(first(dc.zeros "f32[8, 64]"))
