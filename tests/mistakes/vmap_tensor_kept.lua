local dc = require "deepc"

local kept = setmetatable({}, { __index = {} })
dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  local y = dc.vmap(function(a)
    kept.a = a * 3
    return a * 2
  end)(x)
  return y + kept.a
end)
