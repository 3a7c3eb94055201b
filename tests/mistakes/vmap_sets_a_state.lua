local dc = require "deepc"

local seen = dc.state("f32[]", 0)
dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  return dc.vmap(function(a)
    seen:set(seen + a)
    return a * 2
  end)(x)
end)
