local dc = require "deepc"

local x = dc.iota "f32[4]" * 0.1
local y = x
for _ = 1, 100 do
  y = y + 0.01 * y:sin()
end
print(dc.grad(y:sum(), x))
