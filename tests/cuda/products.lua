-- Products on a device of one multiprocessor (CUDA_STANDIN_UNITS), where small ones have the tiles of large ones, with
-- more shared memory than arrays of a text may have. Operands are small whole numbers, so every order of additions is exact.
local lu = require "luaunit"
local dc = require "deepc"

TestProducts = {}

-- Numbers -2 to 2 in an order that repeats late.
local function digits(type, rows, columns, salt)
  local n = dc.iota(("i32[%d]"):format(rows * columns))
  return ((n * 7 + n // 11 + n // 101 + salt) % 5 - 2):cast(type):reshape(rows, columns)
end

local function compare(type, m, n, k)
  for _, form in ipairs { "nn", "nt", "tn", "tt" } do
    local left, right = form:sub(1, 1) == "t", form:sub(2) == "t"
    local a = digits(type, left and k or m, left and m or k, 1)
    local b = digits(type, right and n or k, right and k or n, 2)
    local function product(x, y)
      return (left and x:transpose() or x):matmul(right and y:transpose() or y)
    end
    local f = dc.fn(("f(x: %s[%d, %d], y: %s[%d, %d]) -> %s[%d, %d]"):format(type, a:size(1), a:size(2), type,
      b:size(1), b:size(2), type, m, n), product)
    local want = product(a:cast "f64", b:cast "f64"):cast(type)
    lu.assertEquals(dc.ne(f(a, b), want):cast "i32":sum():item(), 0, ("%s %s %d %d %d"):format(type, form, m, n, k))
  end
end

for _, type in ipairs { "f16", "bf16", "f32" } do
  TestProducts["test_" .. type] = function()
    compare(type, 256, 256, 96)
    compare(type, 130, 264, 200)
    compare(type, 129, 257, 33)
    compare(type, 40, 40, 36)
  end
end
