local dc = require "deepc"
local linalg = require "deepc.linalg"
local step = dc.fn("step(a: f32[batch, 2, 2]) -> f32[batch, 2, 2]", function(a)
  return dc.vmap(function(row) return linalg.inv(row) end)(a)
end)

step(dc.stack { dc.eye "f32[2, 2]", dc.zeros "f32[2, 2]" })
