-- Newton's method until it has converged, and how the root depends on the number
local dc = require "deepc"

local function root(a)
  return dc.loop(function(x) return (x * x - a):abs():gt(1e-4) end, function(x)
    return (x + a / x) * 0.5
  end, dc.ones "f32[]")
end

local slope = dc.fn("slope(a: f32[]) -> f32[]", function(a)
  return dc.grad(root(a), a)
end)
print(slope(dc.tensor(2)))
