local dc = require "deepc"
local nn = require "deepc.nn"

local f = dc.fn("f(logits: f32[3, 2, 4], labels: i32[3, 2]) -> f32[]", function(logits, labels)
  return (dc.scan(function(sum, x)
    return sum + nn.cross_entropy(x.logits, x.labels)
  end, 0, { logits = logits, labels = labels }))
end)
f(dc.zeros "f32[3, 2, 4]", dc.tensor({ { 0, 1 }, { 2, 4 }, { 7, 0 } }, "i32[3, 2]"))
