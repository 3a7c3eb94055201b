-- run: deepc check
local dc = require "deepc"

local names = { "a", "b" }
local f = dc.fn("f(x: f32[t <= 8, 3], y: f32[t]) -> f32[]", function(x, y)
  if #x == 1 then -- not #x == 2
    return x:sum()
  end
  if x:size(2) == 3 and #names == 2 and y.shape[1] ~= 4 then
    return y:sum()
  end
  return #x == #y and x:size(1) == 8 and y:mean() or x:mean()
end)
print(f(dc.zeros "f32[1, 3]", dc.zeros "f32[1]"))
