-- Tensors of bytes and back; tables of any form, whatever way they are read.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"

local fails = check.fails

TestBytes = {}

function TestBytes:test_there_and_back()
  local x = dc.frombytes(string.pack("<ffffff", 1, -2, 0.5, 1e30, 0 / 1, 7), "f32[2, n=3]")
  lu.assertEquals(x:totable(), { { 1, -2, 0.5 }, { string.unpack("<f", string.pack("<f", 1e30)), 0, 7 } })
  lu.assertEquals(x:size "n", 3)
  lu.assertEquals(x:bytes(), string.pack("<ffffff", 1, -2, 0.5, 1e30, 0, 7))
  lu.assertEquals(x:transpose():bytes(), string.pack("<ffffff", 1, 1e30, -2, 0, 0.5, 7)) -- a view is dense
  local dtypes = "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64"
  for dtype in dtypes:gmatch "%w+" do
    local y = dc.tensor({ 0, 1, 1, 0 }, "i32"):cast(dtype)
    local again = dc.frombytes(y:bytes(), dtype)
    lu.assertEquals(again.dtype, dtype)
    lu.assertTrue(again:eq(y):all():item())
  end
end

function TestBytes:test_sizes()
  lu.assertEquals(dc.frombytes("", "f32").shape, { 0 })
  lu.assertEquals(dc.frombytes("", "f64[0, 3]").shape, { 0, 3 })
  lu.assertEquals(dc.frombytes("\1", "u8[]"):item(), 1)
  lu.assertEquals(dc.zeros("f32[0]"):bytes(), "")
  fails("5 bytes are no whole number of f32, which has 4", dc.frombytes, "12345", "f32")
  fails("f32[2] has 8 bytes, 4 are given", dc.frombytes, "1234", "f32[2]")
  fails("a string of bytes is needed, not a table", dc.frombytes, {}, "f32")
  fails("byte 2 is 2, a bool is a byte of 0 or 1", dc.frombytes, "\1\2", "bool")
  fails('a type such as "f32[64, 784]" is needed, not nil', dc.frombytes, "1234")
end

function TestBytes:test_of_cells_and_lazily()
  local w = dc.param("f32[2]", { 1, 2 })
  lu.assertEquals(w:bytes(), string.pack("<ff", 1, 2))
  lu.assertEquals((w * 2):bytes(), string.pack("<ff", 2, 4))
  fails("has no value while", dc.fn, "f(x: f32[2]) -> f32[2]", function(x) return x:bytes() end)
end

TestTables = {}

-- Parts of these tables are hashes, or have other orders than 1, 2, 3 ...
function TestTables:test_any_form()
  local backwards, mixed = {}, { 1, 2, 3 }
  for i = 9, 1, -1 do
    backwards[i] = i
  end
  for i = 40, 4, -1 do
    mixed[i] = i
  end
  for _, dtype in ipairs { "f32", "f64", "i32", "i64", "u8", "bf16" } do
    lu.assertEquals(dc.tensor(backwards, dtype):totable(), { 1, 2, 3, 4, 5, 6, 7, 8, 9 })
    local t = dc.tensor(mixed, dtype):totable()
    for i = 1, 40 do
      lu.assertEquals(t[i], i)
    end
  end
  backwards.name = 1
  fails("the table has 9 elements and the key 'name' besides", dc.tensor, backwards)
  fails("the table has 3 elements and the key 'x' besides", dc.tensor, { 1, 2, 3, x = 4 })
  fails("the table at [2] has 2 elements and the key 'y' besides", dc.tensor, { { 1, 2 }, { 3, 4, y = 5 } })
end

function TestTables:test_elements_that_do_not_fit()
  fails("300 at [2] does not fit u8", dc.tensor, { 1, 300 }, "u8")
  fails("2147483648 at [3] does not fit i32", dc.tensor, { 1, 2, 2147483648 }, "i32")
  fails("1.5 at [1][2] does not fit i64", dc.tensor, { { 1, 1.5 } }, "i64")
  fails("1e+300 at [1] does not fit f32", dc.tensor, { 1e300, 2 })
  fails("a number is needed at [2], not the string '2'", dc.tensor, { 1, "2" })
  lu.assertEquals(dc.tensor({ 1.0, 2 }, "i32"):totable(), { 1, 2 })
  lu.assertEquals(dc.tensor({ math.huge, -math.huge }):totable(), { math.huge, -math.huge })
  local nan = dc.tensor({ 0 / 0, 1 }):totable()
  lu.assertTrue(nan[1] ~= nan[1] and nan[2] == 1)
end
