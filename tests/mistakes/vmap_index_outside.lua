local dc = require "deepc"

local table_of = dc.ones "f32[4, 2]"
local f = dc.fn("f(ids: i32[b=3, 2]) -> f32[b=3, 2]", function(ids)
  return dc.vmap(function(i) return table_of:take(i):sum(1) end)(ids)
end)
print(f(dc.tensor({ { 0, 1 }, { 2, 3 }, { 1, 9 } }, "i32[b=3, 2]")):sum())
