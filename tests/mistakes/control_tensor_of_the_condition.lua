local dc = require "deepc"

local State = setmetatable({}, { __call = function(_, c) return c:lt(100) end })
dc.fn("f(x: f32[]) -> f32[]", function(x)
  local object = setmetatable({}, {})
  local y = dc.loop(function(c)
    object.rest = 100 - c
    return State(c)
  end, function(c) return c * 2 end, x)
  return y + object.rest
end)
