local dc = require "deepc"
local linalg = require "deepc.linalg"
local step = dc.fn("step(a: f32[batch, 2, 2], b: f32[batch, 2]) -> f32[batch, 2]", function(a, b)
  local x = linalg.solve(a, b)
  return x
end)

step(dc.stack { dc.eye "f32[2, 2]", dc.ones "f32[2, 2]" }, dc.ones "f32[2, 2]")
