-- Tensors of more than 2^31 elements: what stands behind that is found, written, added up and named, or refused.
-- One byte an element; at most two of them are alive, so that 6 GB are enough.
local dc = require "deepc"

local N = 2200000000
local failed = 0

local function same(what, got, wanted)
  if got ~= wanted then
    failed = failed + 1
    print(("failed: %s: %s, not %s"):format(what, tostring(got), tostring(wanted)))
  end
end

local function refused(what, f, ...)
  local ok, err = pcall(f)
  local text = tostring(err)
  local all = not ok
  for _, part in ipairs { ... } do
    all = all and text:find(part, 1, true) ~= nil
  end
  same(what, all and "refused" or text, "refused")
end

do
  local bytes = dc.zeros(("u8[%d]"):format(N))
  local marked = bytes:put({ N - 1 }, 7)
  same("an element at the end", marked[N - 1]:item(), 7)
  same("the one before", marked[N - 2]:item(), 0)
  same("a part at the end", marked[{ { N - 3, N } }]:sum():item(), 7)
  refused("argmax along it", function() return marked:argmax(1) end, "2200000000 elements", "2147483647")
  refused("an index behind the end", function() return marked[N + 1] end, "2200000001", "2200000000")
  collectgarbage()
end
collectgarbage()
do
  local rows = dc.zeros(("u8[%d, 2]"):format(N // 2)):put({ N // 2, 2 }, 9)
  same("rows of two", rows[N // 2]:argmax(1):item(), 1)
  same("taken", rows:take(dc.tensor({ N // 2 - 1 }, "i64"))[{ 1, 2 }]:item(), 9)
  refused("a row that is not there", function() return rows:take(dc.tensor({ 4294967297 }, "i64")) end,
    "index 4294967297", "1099999999")
end
print(failed == 0 and "well" or "failed")
