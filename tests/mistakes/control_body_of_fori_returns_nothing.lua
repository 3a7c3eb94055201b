local dc = require "deepc"

local total = dc.state "f32[]"
local f = dc.fn("f(x: f32[]) -> ()", function(x)
  dc.fori(10, function(i)
    total:set(total + x * i:cast "f32")
  end, 0)
end)
f(1)
