local dc = require "deepc"

local loss = dc.fn("loss(prediction: f32[n, 1], y: f32[n]) -> f32[]", function(prediction, y)
  return (prediction - y):square():mean()
end)
print(loss(dc.ones "f32[64, 1]", dc.ones "f32[64]"))
