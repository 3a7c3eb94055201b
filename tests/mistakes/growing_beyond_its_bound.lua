local dc = require "deepc"

local cache = dc.state "f32[0 <= t <= 8, 4]"
local add = dc.fn("add(x: f32[n <= 4, 4])", function(x)
  cache:set(dc.concat({ cache, x }, 1))
end)

for _ = 1, 3 do
  add(dc.ones "f32[3, 4]")
end
