-- run: deepc check
local dc = require "deepc"

dc.mesh { data = 4 }
local total = dc.fn("total(x: f32[n @ data]) -> f32[]", function(x)
  return dc.all_reduce(x:sum())
end)
total(dc.ones "f32[32]")
