-- A column that is not there, found when the call has it.
local dc = require "deepc"

local pick = dc.fn("pick(scores: f32[2, 3], best: i32[2, 1]) -> f32[2, 1]", function(scores, best)
  return scores:gather(best, 2)
end)
print(pick(dc.ones "f32[2, 3]", { { 1 }, { 3 } }))
