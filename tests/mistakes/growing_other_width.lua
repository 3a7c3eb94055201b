local dc = require "deepc"

local cache = dc.state "f32[0 <= t <= 8, 4]"
dc.fn("add(x: f32[n <= 2, 5])", function(x)
  cache:set(x)
end)
