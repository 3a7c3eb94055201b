local dc = require "deepc"

local count = dc.state("i32[]", 0)
local f = dc.fn("f(x: f32[4]) -> ()", function(x)
  count:set(count + x:sum())
end)
