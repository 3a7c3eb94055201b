-- Reductions of many numbers to few, which are made in two steps, against sums known beforehand.
-- luacheck: ignore 431 631
local dc = require "deepc"
local lu = require "luaunit"

TestLarge = {}

-- Numbers 0 to 9 in turn; their sum over 10 n of them is 45 n.
local function digits(type_text)
  return dc.fn("digits() -> " .. type_text, function()
    local t = dc.zeros(type_text)
    local n = 1
    for _, size in ipairs(t.shape) do n = n * size end
    return (dc.iota(("i32[%d]"):format(n)) % 10):cast(t.dtype):reshape(table.unpack(t.shape))
  end)()
end

function TestLarge.test_everything()
  for _, shape in ipairs { "1310720", "1280, 1024", "5, 262144", "262144, 5", "20, 1, 65536", "1310770" } do
    local x = digits("i32[" .. shape .. "]")
    local n = 1
    for _, size in ipairs(x.shape) do n = n * size end
    local f = dc.fn(("all(x: i32[%s]) -> i64[], i32[], i32[]"):format(shape), function(x)
      return x:sum(), x:max(), (x - 3):min()
    end)
    local sum, most, least = f(x)
    lu.assertEquals(sum:item(), n // 10 * 45, shape)
    lu.assertEquals({ most:item(), least:item() }, { 9, -3 }, shape)
  end
end

function TestLarge.test_columns()
  for _, columns in ipairs { 10, 256, 1000, 3 } do
    local rows = 1 << 20
    rows = rows // columns // 10 * 10 + 10
    local x = digits(("i32[%d, %d]"):format(rows, columns))
    local f = dc.fn(("columns(x: i32[%d, %d]) -> i64[%d], i64[]"):format(rows, columns, columns), function(x)
      return x:sum(1), x:sum()
    end)
    local by_column, all = f(x)
    local sum = 0
    for _, v in ipairs(by_column:totable()) do sum = sum + v end
    lu.assertEquals(sum, rows * columns // 10 * 45)
    lu.assertEquals(all:item(), sum)
    lu.assertEquals(by_column[1]:item(), columns % 10 == 0 and 0 or columns == 256 and rows // 5 * 20 or rows // 10 * 45)
  end
end

-- What is added up in 16 bits is rounded once.
function TestLarge.test_short_floats()
  local f = dc.fn("mean(x: i32[262144]) -> f16[], bf16[]", function(x)
    local ones = (x - x + 1):cast "f16"
    return (ones * 0.125):sum(), (ones:cast "bf16" * 0.125):sum()
  end)
  local a, b = f(digits "i32[262144]")
  lu.assertEquals({ a:item(), b:item() }, { 32768.0, 32768.0 })
end

-- Few rows of many columns, with operands that repeat along rows and columns.
function TestLarge.test_with_neighbours()
  local x = digits "f32[4, 65536]"
  local f = dc.fn("f(x: f32[4, 65536], w: f32[65536], b: f32[4, 1]) -> f32[4], f32[]", function(x, w, b)
    return (x * w + b):sum(2), ((x * w + b):max())
  end)
  local rows, most = f(x, dc.full("f32[65536]", 2), dc.full("f32[4, 1]", 1))
  for i = 1, 4 do
    local want = 0
    for k = 0, 65535 do want = want + 2 * ((65536 * (i - 1) + k) % 10) + 1 end
    lu.assertEquals(rows[i]:item(), want)
  end
  lu.assertEquals(most:item(), 19.0)
end
