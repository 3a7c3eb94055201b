-- run: deepc check
local dc = require "deepc"

dc.mesh { data = 4 }
local running = dc.fn("running(x: f32[32 @ data, 10]) -> f32[32 @ data, 10]", function(x)
  return x:cumsum(1)
end, nil, { strict = true })
running(dc.ones "f32[8, 10]")
