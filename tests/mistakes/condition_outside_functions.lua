-- run: script
local dc = require "deepc"
local x = dc.tensor { -1, 2, 3 }

if x:sum():gt(5) then
  print "larger than 5"
end
local sign = not x:lt(0):any() and "positive" or "mixed"
assert(x:eq(x + 1):all(), "they differ")

-- Those that are read somewhere are no conditions.
local rows = 0
for i = 1, 3 do
  local mask = x:ge(i)
  if i == 3 then rows = mask:sum():item() end
end
print(sign, rows, x:allclose(x), x:allclose(x + 1))
