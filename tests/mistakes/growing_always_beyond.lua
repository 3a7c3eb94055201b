local dc = require "deepc"

local cache = dc.state "f32[t <= 8, 4]"
dc.fn("add(x: f32[8, 4])", function(x)
  cache:set(dc.concat({ cache, x }, 1))
end)
