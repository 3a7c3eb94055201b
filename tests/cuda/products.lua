-- Products on a device of one multiprocessor (CUDA_STANDIN_UNITS), where small ones have the tiles of large ones, with
-- more shared memory than arrays of a text may have. Operands are small whole numbers, so sums are exact in any order.
local lu = require "luaunit"
local dc = require "deepc"

TestProducts = {}

-- Numbers -2 to 2 in an order that repeats late.
local function digits(type, rows, columns, salt)
  local n = dc.iota(("i32[%d]"):format(rows * columns))
  return ((n * 7 + n // 11 + n // 101 + salt) % 5 - 2):cast(type):reshape(rows, columns)
end

local function compare(type, m, n, k, sum)
  sum = sum or type
  for _, form in ipairs { "nn", "nt", "tn", "tt" } do
    local left, right = form:sub(1, 1) == "t", form:sub(2) == "t"
    local a = digits(type, left and k or m, left and m or k, 1)
    local b = digits(type, right and n or k, right and k or n, 2)
    local function product(x, y)
      return (left and x:transpose() or x):matmul(right and y:transpose() or y, { dtype = sum })
    end
    local f = dc.fn(("f(x: %s[%d, %d], y: %s[%d, %d]) -> %s[%d, %d]"):format(type, a:size(1), a:size(2), type,
      b:size(1), b:size(2), sum, m, n), product)
    local x, y = a:cast "f64", b:cast "f64"
    local want = (left and x:transpose() or x):matmul(right and y:transpose() or y):cast(sum)
    lu.assertEquals(dc.ne(f(a, b), want):cast "i32":sum():item(), 0, ("%s %s %d %d %d"):format(type, form, m, n, k))
  end
end

local wgmma = os.getenv "DEEPC_GPU" == "wgmma"
local types = os.getenv "DEEPC_MATH" == "tf32" and { f32 = "f32" }
  or wgmma and { f16 = "f16", bf16 = "bf16" } or { f16 = "f16", bf16 = "bf16", f32 = "f32", i8 = "i32" }
for type, sum in pairs(types) do
  TestProducts["test_" .. type] = function()
    compare(type, 136, 264, 96, sum)
    compare(type, 129, 257, 33, sum)
    if wgmma and not os.getenv "CUDA_STANDIN_UNITS" then -- a GPU: enough tiles for all of it
      compare(type, 1032, 1096, 520, sum)
      compare(type, 1025, 4104, 264, sum)
      compare(type, 4096, 4096, 1024, sum)
    elseif wgmma then -- rings of stages that go round; one tile
      compare(type, 136, 264, 328, sum)
      compare(type, 64, 64, 512, sum)
    end
  end
end

-- With DEEPC_MATH=tf32 factors have 10 bits of the fraction, ties away from zero; else all of them.
function TestProducts:test_tf32()
  local f = dc.fn("f(x: f32[64, 64], y: f32[64, 64]) -> f32[64, 64]", function(x, y)
    return x:matmul(y)
  end)
  local rounds = os.getenv "DEEPC_MATH" == "tf32"
  local one = dc.eye "f32[64, 64]"
  for _, case in ipairs { { 1 + 2 ^ -10, 1 + 2 ^ -10 }, { 1 + 2 ^ -11, 1 + 2 ^ -10 }, { 1 + 2 ^ -12, 1 },
    { -1 - 2 ^ -11, -1 - 2 ^ -10 }, { 3 + 2 ^ -23 * 2, 3 } } do
    local x = dc.full("f32[64, 64]", case[1])
    local want = rounds and case[2] or case[1]
    lu.assertEquals(f(x, one)[3][5]:item(), want)
    lu.assertEquals(f(one, x)[63][1]:item(), want)
  end
end
