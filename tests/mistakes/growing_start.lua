local dc = require "deepc"

local cache = dc.state "f32[0 <= t <= 8]"
local add = dc.fn("add(x: f32[n <= 4])", function(x)
  cache:set(dc.concat({ cache, x }, 1))
end)
add:start { 1, 2 }
