local dc = require "deepc"

local a = dc.zeros "f32[10, 3]"
for i = 0, 9 do
  print(a[i])
end
