-- Reductions of few columns: rows beside each other in vectors, those behind the last whole vector by themselves.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"

TestShortSums = {}

local function value(i)
  return (i * 37 % 101 - 50) / 4
end

-- Row by row: sum, largest, sum of squares of c numbers.
local function expected(rows, c)
  local sum, most, squares = {}, {}, {}
  for r = 1, rows do
    sum[r], most[r], squares[r] = 0, -math.huge, 0
    for k = 1, c do
      local v = value((r - 1) * c + k)
      sum[r], most[r], squares[r] = sum[r] + v, math.max(most[r], v), squares[r] + v * v
    end
  end
  return sum, most, squares
end

local function numbers(n)
  local t = {}
  for i = 1, n do t[i] = value(i) end
  return t
end

local function compare(rows, c, dtype)
  local f = dc.fn(("short(x: %s[%d, %d]) -> f32[%d], %s[%d], f32[%d]"):format(dtype, rows, c, rows, dtype, rows, rows),
    function(x)
      local wide = x:cast "f32"
      return wide:sum(2), x:max(2), (wide * wide):sum(2)
    end)
  local sum, most, squares = f(dc.tensor(numbers(rows * c), dtype):reshape(rows, c))
  local a, b, d = expected(rows, c)
  local what = ("%s[%d, %d]"):format(dtype, rows, c)
  check.close(sum:totable(), a, 1e-4, what)
  check.close(most:totable(), b, 0, what)
  check.close(squares:totable(), d, 1e-2, what)
end

function TestShortSums:test_rows_and_columns()
  for c = 1, 9 do
    for _, rows in ipairs { 1, 3, 16, 17, 47, 1003 } do compare(rows, c, "f32") end
  end
  for c = 1, 9, 2 do
    compare(77, c, "f16")
    compare(77, c, "f64")
  end
end

-- A sum begins with 0, also that of one number; the largest of one number is that number.
function TestShortSums:test_one_column()
  local f = dc.fn("one(x: f32[3, 1]) -> f32[3], f32[3], f32[3]", function(x)
    return x:sum(2), x:max(2), x:prod(2)
  end)
  local sum, most, product = f(dc.tensor { { -0.0 }, { 0.0 / 0.0 }, { 2 } })
  lu.assertEquals(1 / sum[1]:item(), math.huge)
  lu.assertNotEquals(sum[2]:item(), sum[2]:item())
  lu.assertEquals(1 / most[1]:item(), -math.huge)
  lu.assertEquals(1 / product[1]:item(), -math.huge)
  lu.assertEquals(most[3]:item() + product[3]:item(), 4.0)
end
