local dc = require "deepc"
dc.fn("f(x: f32[3]) -> f32[3]", function(x)
  local y = x / 2 * 2
  assert(x:allclose(y))
  return y
end)
