-- run: deepc check
local dc = require "deepc"

-- what is shown, asked for its type, or used in one turn of a loop is used
local step = dc.fn("step(x: f32[4]) -> f32[4]", function(x)
  local first, _ = x:split(2)
  print(x:gt(0))
  dc.print(x:max())
  local n = x:abs():size(1)
  for i = 1, n do
    local mask = x:ge(i)
    if i == n then
      x = x * mask:cast "f32"
    end
  end
  return x + first:sum()
end)
local x = step(dc.ones "f32[4]")
print(x:gt(0), x:lt(0):any():item())
io.write(tostring(x:eq(1):all()))
