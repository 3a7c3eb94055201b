-- run: script
local dc = require "deepc"
local prediction, target = dc.randn("f32[4, 1]", { seed = 1 }), dc.zeros "f32[4]"

local error_of = dc.fn("error_of(p: f32[4, 1], y: f32[4]) -> f32[]", function(p, y)
  return (p - y):square():mean()
end)
error_of(prediction, target)
for _ = 1, 3 do
  print((prediction - target).shape)
end
-- These say what they mean.
print((prediction - target:reshape(1, 4)).shape, (prediction - target:reshape(prediction.shape)).shape)
print((dc.ones "f32[4, 3]" + dc.ones "f32[3]").shape)
