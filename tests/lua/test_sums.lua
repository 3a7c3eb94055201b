-- Long sums of f32 beside those of f64. The additions that follow one another are few: rounding errors stay far
-- below what one running sum would have, for equal terms, where they all go one way, and for random ones.
local lu = require "luaunit"
local dc = require "deepc"

TestLongSums = {}

local UNIT = 2 ^ -24 -- half the distance of floats behind 1

-- Each sums up n numbers: how the result follows from x.
local kinds = {
  { "all", "f32[%d]", function(x) return x:sum() end, "[]" },
  { "rows", "f32[3, %d]", function(x) return x:sum(2) end, "[3]" },
  { "few columns", "f32[%d, 3]", function(x) return x:sum(1) end, "[3]" },
  { "columns", "f32[%d, 40]", function(x) return x:sum(1) end, "[40]" },
  { "means", "f32[2, %d]", function(x) return x:mean(2) end, "[2]" },
  { "norms", "f32[%d]", function(x) return (x * x):sum() end, "[]" },
  { "sums together", "f32[%d, 8]", function(x) return x:sum(1) + (x * x):sum(1) end, "[8]" },
  { "axes around", "f32[%d // 8, 6, 8]", function(x) return x:sum { axis = { 1, 3 } } end, "[6]" },
  { "log of sums", "f32[2, %d]", function(x) return x:exp():sum(2):log() end, "[2]" },
}

local function check(kind, n, make)
  local name, type, body, result = table.unpack(kind)
  type = type:gsub("%%d // 8", tostring(n // 8)):gsub("%%d", tostring(n))
  local sum = dc.fn(("sum(x: %s) -> f32%s"):format(type, result), body)
  local wide = dc.fn(("wide(x: %s) -> f64%s"):format(type, result), function(x) return body(x:cast "f64") end)
  local terms = make(type)
  local want = wide(terms)
  local off = ((sum(terms):cast "f64" - want):abs() / want:abs()):max():item()
  lu.assertTrue(off <= UNIT * n ^ 0.5 / 4, ("%s of %d: off by %g of the sum"):format(name, n, off))
end

for _, n in ipairs { 10000, 16381, 100000 } do
  TestLongSums["test_equal_terms_" .. n] = function()
    for _, kind in ipairs(kinds) do
      check(kind, n, function(type) return dc.full(type, 0.1) end)
    end
  end
  TestLongSums["test_random_terms_" .. n] = function()
    for i, kind in ipairs(kinds) do
      check(kind, n, function(type) return dc.rand(type, { seed = i }) end)
    end
  end
end

-- What is as exact one after the other stays so: whole numbers, and the largest of many.
function TestLongSums:test_what_is_exact()
  local f = dc.fn("f(x: i32[100000]) -> i64[], i32[]", function(x) return x:sum(), x:max() end)
  local sum, max = f(dc.iota "i32[100000]" - 30000)
  lu.assertEquals(sum:item(), 100000 * 99999 // 2 - 30000 * 100000)
  lu.assertEquals(max:item(), 69999)
  local g = dc.fn("g(x: f32[100000]) -> f32[], f32[]", function(x) return x:max(), x:min() end)
  max, sum = g(dc.iota "f32[100000]" * 0.5)
  lu.assertEquals({ max:item(), sum:item() }, { 49999.5, 0 })
end
-- Rows shorter than vectors, with and without a rest of rows: lanes go along the row, or are rows side by side.
function TestLongSums.test_short_rows()
  for _, rows in ipairs { 48, 53 } do
    for columns = 1, 40 do
      local size = ("[%d, %d]"):format(rows, columns)
      local x = (dc.iota("i32" .. size) * 7 % 23):cast "f32"
      local f = dc.fn(("f(a: f32%s) -> f32[%d], f32[%d], f32%s"):format(size, rows, rows, size), function(a)
        return a:sum(2), a:max(2), a:softmax(2)
      end)
      local sum, max, softmax = f(x:clone())
      lu.assertEquals(sum:totable(), x:cast("i32"):sum(2):cast("f32"):totable(), size)
      lu.assertEquals(max:totable(), x:cast("i32"):max(2):cast("f32"):totable(), size)
      lu.assertTrue((softmax:sum(2) - 1):abs():max():item() < 1e-6, size)
      lu.assertTrue((softmax * (x - max:reshape(-1, 1)):exp():sum { axis = 2, keep = true } - (x - max:reshape(-1, 1))
        :exp()):abs():max():item() < 1e-6, size)
    end
  end
end


TestIntegers = {}

-- As many of the largest terms as 32 bits hold, and one more: sums are i64 and u64 whatever they are made in.
function TestIntegers:test_where_32_bits_end()
  local terms = {
    i8 = { -128, 127 }, u8 = { 255 }, i16 = { -32768, 32767 }, u16 = { 65535 },
  }
  for dtype, values in pairs(terms) do
    for _, v in ipairs(values) do
      local most = v < 0 and (1 << 31) // -v or ((1 << 31) - 1) // v
      for _, n in ipairs { 1000, math.min(most, 1 << 17), math.min(most, 1 << 17) + 1 } do
        local f = dc.fn(("f(x: %s[2, %d])"):format(dtype, n), function(x) return x:sum(), x:sum(2), x:sum(1) end)
        local all, rows, columns = f(dc.full(("%s[2, %d]"):format(dtype, n), v))
        lu.assertEquals(all.dtype, dtype:sub(1, 1) .. "64")
        lu.assertEquals(all:item(), 2 * n * v)
        lu.assertEquals(rows:totable(), { n * v, n * v })
        lu.assertEquals(columns[n]:item(), 2 * v)
      end
    end
  end
end

-- Longer sums of short integers are sums of parts of the longest axis, where it has equal parts; 40009 is a prime.
function TestIntegers:test_sums_of_parts()
  for _, n in ipairs { 40000, 40009, 32770 } do
    for _, dtype in ipairs { "u16", "i16" } do
      local terms = (dc.iota(("i32[3, %d, 2]"):format(n)) * 7919):cast(dtype)
      for _, axis in ipairs { { 2 }, { 1, 2 }, { 2, 3 }, { 1, 2, 3 } } do
        for _, keep in ipairs { false, true } do
          local f = dc.fn(("f(x: %s[3, %d, c=2])"):format(dtype, n), function(x)
            return x:sum { axis = axis, keep = keep }, x:cast("f64"):sum { axis = axis, keep = keep }
          end)
          local sum, want = f(terms)
          lu.assertEquals(sum.shape, want.shape)
          lu.assertEquals(sum.dtype, dtype:sub(1, 1) .. "64")
          lu.assertTrue(sum:cast("f64"):eq(want):all():item())
          lu.assertTrue(terms:sum { axis = axis, keep = keep }:eq(sum):all():item())
        end
      end
    end
  end
end

-- A widening that a sum does once for a row costs the vectors nothing.
function TestIntegers:test_vectors_of_short_sums()
  lu.skipIf(not dc.device():find "^cpu", "a rule of CPUs")
  local function lanes(dtype)
    local f = dc.fn(("f(x: %s[64, 256])"):format(dtype), function(x) return x:sum(2) end)
    f(dc.ones(dtype .. "[64, 256]"))
    return f:source(1):match "in (%d+) vector"
  end
  lu.assertEquals(lanes "i8", lanes "f32")
end
