local dc = require "deepc"

local cache = dc.state "f32[0 <= t <= 8]"
local set = dc.fn("set(x: f32[])", function(x)
  cache:set(cache:put({ 2 }, x))
end)
set(1)
