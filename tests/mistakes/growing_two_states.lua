local dc = require "deepc"

local keys, values = dc.state "f32[0 <= t <= 8, 4]", dc.state "f32[0 <= t <= 8, 4]"
dc.fn("both() -> f32[4, 4]", function()
  return keys:transpose():matmul(values)
end)
