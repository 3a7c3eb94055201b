local dc = require "deepc"

local co = coroutine.wrap(function()
  local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
    coroutine.yield(x)
    return x
  end)
end)
co()
