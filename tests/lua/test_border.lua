-- Every dtype at the border to Lua: what goes in comes out, exactly, or is refused.
local lu = require "luaunit"
local dc = require "deepc"

-- dtype = { smallest, largest } as Lua numbers; u64 has its largest integer of Lua.
local integers = {
  i8 = { -128, 127 }, i16 = { -32768, 32767 }, i32 = { -2147483648, 2147483647 },
  i64 = { math.mininteger, math.maxinteger },
  u8 = { 0, 255 }, u16 = { 0, 65535 }, u32 = { 0, 4294967295 }, u64 = { 0, math.maxinteger },
}
-- dtype = { largest, its text, 1/3 as text, what is too large }
local floats = {
  f16 = { 65504.0, "65500.0", "0.3333", 65520.0 },
  bf16 = { 0x1.fep127, "3.39e+38", "0.334", 0x1.ffp127 },
  f32 = { 0x1.fffffep127, "3.4028235e+38", "0.33333334", 0x1.ffffffp127 },
  f64 = { 0x1.fffffffffffffp1023, "1.7976931348623157e+308", "0.3333333333333333", nil },
}

-- The first line of the message of f(...), without the place.
local function message(f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  return (tostring(err):match "^[^\n]*":gsub("^[^\n]-test_border%.lua:%d+: ", ""))
end

TestIntegers = {}

function TestIntegers:test_ends_go_in_and_out()
  for dtype, ends in pairs(integers) do
    local t = dc.tensor(ends, dtype)
    lu.assertEquals(t:totable(), ends, dtype)
    lu.assertEquals(math.type(t[1]:item()), "integer", dtype)
    lu.assertEquals(tostring(t[2]), ("%d"):format(ends[2]), dtype)
    lu.assertEquals(dc.full(dtype .. "[2]", ends[2]):totable(), { ends[2], ends[2] }, dtype)
    lu.assertEquals(dc.state(dtype .. "[]", ends[1]):item(), ends[1], dtype)
  end
end

function TestIntegers:test_beyond_the_ends_is_refused()
  for dtype, ends in pairs(integers) do
    if not dtype:match "64" then
      for _, v in ipairs { ends[1] - 1, ends[2] + 1 } do
        lu.assertEquals(message(dc.tensor, v, dtype), ("tensor: %d does not fit %s"):format(v, dtype))
      end
    end
    lu.assertEquals(message(dc.tensor, 0.5, dtype), ("tensor: 0.5 does not fit %s"):format(dtype))
    lu.assertEquals(message(dc.tensor, 0 / 0, dtype), ("tensor: nan does not fit %s"):format(dtype))
    lu.assertEquals(message(dc.tensor, 1 / 0, dtype), ("tensor: inf does not fit %s"):format(dtype))
  end
  lu.assertEquals(message(dc.tensor, 2 ^ 63, "i64"), "tensor: 9.2233720368548e+18 does not fit i64")
  lu.assertEquals(message(dc.tensor, 2 ^ 64, "u64"), "tensor: 1.844674407371e+19 does not fit u64")
  lu.assertEquals(message(dc.tensor, -1, "u64"), "tensor: -1 does not fit u64")
end

function TestIntegers:test_64_bits_are_exact()
  local n = (1 << 53) + 1 -- no double
  for _, dtype in ipairs { "i64", "u64" } do
    local t = dc.tensor({ n, 0 }, dtype)
    lu.assertEquals(t:totable(), { n, 0 })
    lu.assertEquals((t + 1):totable(), { n + 1, 1 })
    lu.assertEquals((t + n):totable(), { 2 * n, n })
    lu.assertEquals(t:sum():item(), n)
    local f = dc.fn(("f(x: %s[2], k: %s[]) -> %s[2]"):format(dtype, dtype, dtype), function(x, k)
      return x + k + dc.full(dtype .. "[2]", n)
    end)
    lu.assertEquals(f(t, n):totable(), { 3 * n, 2 * n })
  end
end

function TestIntegers:test_u64_from_two_to_the_63()
  local t = dc.tensor(2 ^ 63, "u64")
  lu.assertEquals(tostring(t), "9223372036854775808")
  lu.assertEquals(t:cast "i64":item(), math.mininteger)
  lu.assertEquals(message(t.item, t), "item: 9223372036854775808 does not fit a Lua integer")
  lu.assertEquals(message(t.totable, t), "totable: 9223372036854775808 does not fit a Lua integer")
  lu.assertEquals(tostring(dc.tensor(-1, "i64"):cast "u64"), "18446744073709551615")
end

TestFloats = {}

function TestFloats:test_ends_go_in_and_out()
  for dtype, row in pairs(floats) do
    local t = dc.tensor({ row[1], -row[1], 1 / 0, -1 / 0 }, dtype)
    lu.assertEquals(t:totable(), { row[1], -row[1], 1 / 0, -1 / 0 }, dtype)
    lu.assertEquals(tostring(t[1]), row[2], dtype)
    lu.assertIsNaN(dc.tensor(0 / 0, dtype):item())
    lu.assertEquals(1 / dc.tensor(-0.0, dtype):item(), -1 / 0, dtype)
    if row[4] then
      lu.assertStrContains(message(dc.tensor, row[4], dtype), "does not fit " .. dtype)
    end
  end
end

function TestFloats:test_rounding_and_shortest_digits()
  for dtype, row in pairs(floats) do
    lu.assertEquals(tostring(dc.tensor(0.1, dtype)), "0.1", dtype)
    lu.assertEquals(tostring(dc.tensor(1 / 3, dtype)), row[3], dtype)
    local t = dc.tensor(1 / 3, dtype)
    lu.assertEquals(dc.tensor(tonumber(tostring(t)), dtype):item(), t:item(), dtype)
  end
  lu.assertEquals(dc.tensor(1 / 3, "f64"):item(), 1 / 3)
  for dtype, pair in pairs { f16 = { 2049, 2048 }, bf16 = { 257, 256 }, f32 = { 16777217, 16777216 } } do -- to even
    lu.assertEquals(dc.tensor(pair[1], dtype):item(), pair[2], dtype)
  end
end

TestBool = {}

function TestBool:test_in_and_out()
  lu.assertEquals(dc.tensor({ true, false }, "bool"):totable(), { true, false })
  lu.assertEquals(message(dc.tensor, 1, "bool"), "tensor: 1 does not fit bool")
end

TestTables = {}

function TestTables:test_every_dtype_prints_aligned()
  for dtype in pairs(integers) do
    lu.assertEquals(tostring(dc.tensor({ 1, 100 }, dtype)), "    1  100\n" .. dtype .. "[2]")
  end
  for dtype in pairs(floats) do
    lu.assertEquals(tostring(dc.tensor({ 1, 0.25 }, dtype)), "  1.00  0.25\n" .. dtype .. "[2]")
  end
end

function TestTables:test_every_dtype_in_rules()
  for dtype in pairs(integers) do
    lu.assertEquals(dc.iota(dtype .. "[3]"):totable(), { 0, 1, 2 }, dtype)
    lu.assertEquals(dc.eye(dtype .. "[2, 2]"):totable(), { { 1, 0 }, { 0, 1 } }, dtype)
    if integers[dtype][2] < 65536 then
      local n = integers[dtype][2]
      lu.assertEquals(dc.iota(("%s[%d]"):format(dtype, n + 1))[-1]:item(), n)
      lu.assertEquals(message(dc.iota, ("%s[%d]"):format(dtype, n + 2)),
        ("iota: %d does not fit %s"):format(n + 1, dtype))
    end
  end
  for dtype in pairs(floats) do
    lu.assertEquals(dc.iota(dtype .. "[3]"):totable(), { 0, 1, 2 }, dtype)
    lu.assertEquals(dc.ones(dtype .. "[2]"):totable(), { 1, 1 }, dtype)
  end
end
