local dc = require "deepc"

local f = dc.fn("f(x: f32[batch, 4], y: i32[batch]) -> f32[]", function(x, y)
  return x:sum()
end)
print(f(dc.ones "f32[8, 4]", dc.ones "i32[9]"))
