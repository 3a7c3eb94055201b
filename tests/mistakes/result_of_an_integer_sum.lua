local dc = require "deepc"
local count = dc.fn("count(x: i32[4]) -> i32[]", function(x)
  return x:sum()
end)
print(count(dc.ones "i32[4]"))
