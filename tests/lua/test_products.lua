-- Contractions large enough for every way of tiling them: panels that are packed, right-hand sides that are
-- streamed or read in place, operands that lie transposed, updates behind the sums of whole rows. Elements are
-- small integers, so sums are exact in whatever order, and are checked by their totals and by single elements.
-- luacheck: ignore 431 631
local dc = require "deepc"
local lu = require "luaunit"

TestProducts = {}

-- Digits 0 to 4 in an order that repeats late.
local function digits(rows, columns, salt)
  return dc.fn(("digits() -> f32[%d, %d]"):format(rows, columns), function()
    local n = dc.iota(("i32[%d]"):format(rows * columns))
    return ((n * 7 + n // 11 + n // 101 + salt) % 5):cast "f32":reshape(rows, columns)
  end)()
end

local function entry(a, b, i, j)
  local row, column = a[i]:totable(), b[{ {}, j }]:totable()
  local sum = 0
  for k = 1, #row do
    sum = sum + row[k] * column[k]
  end
  return sum
end

local function check(y, a, b, what)
  local m, n = table.unpack(y.shape)
  lu.assertEquals(y:sum(1):totable(), a:sum(1):matmul(b):totable(), what)
  lu.assertEquals(y:sum(2):totable(), a:matmul(b:sum(2)):totable(), what)
  for _, at in ipairs { { 1, 1 }, { m, n }, { (m + 1) // 2, n // 3 + 1 }, { 1, n }, { m, (n + 1) // 2 } } do
    lu.assertEquals(y[at[1]][at[2]]:item(), entry(a, b, at[1], at[2]), what)
  end
end

-- Groups of threads turn nothing round, and share the sums of few tiles: the parts, what is left of them, and their sum.
local device = os.getenv "DEEPC_DEVICE" or "cpu"
local groups = device:find "cuda" or device == "sim:opencl" or device == "sim:few" or os.getenv "DEEPC_TARGET" == "simt"

local function check_launches(f, want, what)
  local found = f:info()[1].launches
  if groups then
    lu.assertTrue(found <= 3, what .. ": " .. found)
  elseif found > 0 then -- the interpreter launches nothing
    lu.assertEquals(found, want, what)
  end
end

function TestProducts.test_layouts()
  -- Of the sixth, the seventh and the last two the left-hand side is packed where it lies transposed.
  for _, size in ipairs { { 37, 530, 70 }, { 64, 784, 784 }, { 70, 520, 600 }, { 512, 530, 400 }, { 5, 600, 700 },
    { 256, 520, 1030 }, { 512, 520, 512 }, { 100, 2048, 90 }, { 33, 1100, 200 },
    { 251, 540, 1050 }, { 333, 521, 800 } } do
    local m, n, k = table.unpack(size)
    local a, b = digits(m, k, 1), digits(k, n, 2)
    for _, turned in ipairs { "", "a", "b", "ab" } do
      local left, right = turned:find "a" ~= nil, turned:find "b" ~= nil
      local what = ("%d x %d x %d %s"):format(m, n, k, turned)
      local text = ("product(a: f32[%d, %d], b: f32[%d, %d]) -> f32[%d, %d]"):format(left and k or m,
        left and m or k, right and n or k, right and k or n, m, n)
      local f = dc.fn(text, function(a, b)
        return (left and a:transpose() or a):matmul(right and b:transpose() or b)
      end)
      check(f(left and a:transpose():clone() or a, right and b:transpose():clone() or b), a, b, what)
      check_launches(f, 1, what)
    end
  end
end

-- A matrix with itself, whichever way both lie: it is read as two, each of which is packed as it would be alone.
function TestProducts.test_of_one_matrix()
  for _, size in ipairs { { 520, 1030, 2 }, { 300, 500, 1 }, { 37, 70, 1 }, { 600, 8, 1 } } do
    local m, k, launches = table.unpack(size) -- large matrices are turned round before
    local a = digits(k, m, 1)
    local turned = a:transpose():clone()
    local gram = dc.fn(("gram(x: f32[%d, %d]) -> f32[%d, %d]"):format(k, m, m, m), function(x)
      return x:transpose():matmul(x)
    end)
    check(gram(a), turned, a, "gram")
    check_launches(gram, launches, "gram")
    local outer = dc.fn(("outer(x: f32[%d, %d]) -> f32[%d, %d]"):format(m, k, m, m), function(x)
      return x:matmul(x:transpose())
    end)
    check(outer(turned), turned, a, "outer")
    check_launches(outer, 1, "outer")
  end
  for _, m in ipairs { 64, 300, 500 } do
    local a = digits(m, m, 2)
    local turned = a:transpose():clone()
    local t = ("f32[%d, %d]"):format(m, m)
    local both = dc.fn(("both(x: %s) -> %s"):format(t, t), function(x)
      return x:transpose():matmul(x:transpose())
    end)
    check(both(a), turned, turned, "both")
    check_launches(both, 1, "both")
    local c = dc.state(t, a)
    local update = dc.fn("update()", function()
      c:set(c - c:matmul(c) * 0x1p-10)
    end)
    update()
    check((a - c) * 1024, a, a, "update")
  end
end

-- Products whose left-hand side is not packed where it lies transposed, but turned round first: it is cast.
function TestProducts.test_turned_before()
  local m, k = 520, 1030
  local a = digits(k, m, 1)
  local b = digits(k, 300, 2)
  local cast = dc.fn(("cast(a: f16[%d, %d], b: f32[%d, 300]) -> f32[%d, 300]"):format(k, m, k, m), function(a, b)
    return a:cast "f32":transpose():matmul(b)
  end)
  check(cast(a:cast "f16", b), a:transpose():clone(), b, "cast")
end

-- Both operands along the sum: long enough or not for vectors of it, tails in each axis, an update behind it.
function TestProducts.test_few_rows_of_turned_operands()
  for _, m in ipairs { 2, 3, 4, 5, 7, 9, 17, 32 } do
    for _, size in ipairs { { 64, 300 }, { 600, 512 }, { 21, 530 }, { 5, 600 } } do
      local n, k = table.unpack(size)
      local what = ("%d x %d x %d"):format(m, n, k)
      local a, w = digits(m, k, 1), digits(n, k, 2)
      local text = "(a: f32[%d, %d], w: f32[%d, %d], c: f32[%d, %d]) -> f32[%d, %d]"
      local f = dc.fn("plain" .. text:format(m, k, n, k, m, n, m, n), function(a, w, c)
        return a:matmul(w:transpose()) + c
      end)
      local c = digits(m, n, 3)
      check(f(a, w, c) - c, a, w:transpose(), what)
      local g = dc.fn("costly" .. text:format(m, k, n, k, m, n, m, n), function(a, w, c)
        return (a:matmul(w:transpose()) / 64 + c):tanh()
      end)
      local expected = (a:matmul(w:transpose()) / 64 + c):tanh()
      lu.assertTrue((g(a, w, c) - expected):abs():max():item() < 1e-6, what)
    end
  end
end

-- Few rows by matrices that caches may not hold: streamed or read in place, prefetched; how many rows there are may be known
-- only at run time. Left-hand sides of 16 bits are converted a block at a time.
function TestProducts.test_few_rows_of_large_matrices()
  for _, size in ipairs { { 400, 300 }, { 600, 700 }, { 1040, 521 }, { 1024, 512 }, { 100, 20 } } do
    local n, k = table.unpack(size)
    local b = digits(k, n, 2)
    for left, wide in pairs { f32 = "f32", f16 = "f32", bf16 = "bf16" } do
      local right = wide == "bf16" and b:cast "bf16":clone() or b
      local any = dc.fn(("any(a: %s[m <= 130, %d], b: %s[%d, %d]) -> f32[m, %d]"):format(left, k, wide, k, n, n),
        function(a, b) return a:cast "f32":matmul(b:cast "f32") end)
      for _, m in ipairs { 1, 2, 7, 33, 64, 100, 130 } do
        local what = ("%d x %d x %d %s"):format(m, n, k, left)
        local a = digits(m, k, 1)
        local stored = left == "f32" and a or a:cast(left):clone()
        local f = dc.fn(("f(a: %s[%d, %d], b: %s[%d, %d]) -> f32[%d, %d]"):format(left, m, k, wide, k, n, m, n),
          function(a, b) return a:cast "f32":matmul(b:cast "f32") end)
        check(f(stored, right), a, b, what)
        check(any(stored, right), a, b, what .. " of any number")
      end
    end
  end
end

-- Right-hand sides that are made of parameters while they are packed, streamed or read: no launch of their own.
function TestProducts.test_operands_of_other_types()
  local forms = {
    cast = function(w) return w:cast "f32" end,
    rows = function(w, s) return w:cast "f32" * s:reshape(-1, 1) end,
    columns = function(w, _, t) return w:cast "f32" * t end,
  }
  for _, size in ipairs { { 1, 100, 300 }, { 3, 600, 300 }, { 11, 530, 520 }, { 40, 70, 33 }, { 130, 600, 257 } } do
    local m, n, k = table.unpack(size)
    local a, w = digits(m, k, 1), digits(n, k, 2)
    for dtype, form in pairs { f16 = "cast", bf16 = "rows", i8 = "columns", u8 = "cast", i32 = "rows" } do
      for _, turned in ipairs { true, false } do
        local what = ("%d x %d x %d %s %s"):format(m, n, k, dtype, turned)
        local stored = (turned and w or w:transpose()):cast(dtype):clone()
        local rows, columns = table.unpack(stored.shape)
        local s, t = digits(1, rows, 3):reshape(rows), digits(1, columns, 4):reshape(columns)
        local text = ("made(a: f32[%d, %d], w: %s[%d, %d], s: f32[%d], t: f32[%d]) -> f32[%d, %d]")
          :format(m, k, dtype, rows, columns, rows, columns, m, n)
        local f = dc.fn(text, function(a, w, s, t)
          local b = forms[form](w, s, t)
          return a:matmul(turned and b:transpose() or b)
        end)
        local b = forms[form](stored, s, t)
        check(f(a, stored, s, t), a, turned and b:transpose():clone() or b, what)
        check_launches(f, 1, what)
      end
    end
  end
end

-- Sums over examples and positions behind heads, which lie apart: two loops, rows that are two dims of the operand.
function TestProducts.test_weights_behind_heads()
  for _, size in ipairs { { 3, 2, 70, 16, 48 }, { 2, 3, 130, 24, 600 }, { 4, 2, 9, 8, 40 } } do
    local b, h, t, d, n = table.unpack(size)
    local x, g = digits(b * h * t, d, 1):reshape(b, h, t, d), digits(b * t, n, 2)
    local text = ("weights(x: f32[%d, %d, %d, %d], g: f32[%d, %d, %d], w: f32[%d, %d]) -> f32[%d, %d]")
      :format(b, h, t, d, b, t, n, h * d, n, h * d, n)
    local f = dc.fn(text, function(x, g, w)
      return dc.grad((x:permute(1, 3, 2, 4):reshape(b, t, h * d):matmul(w) * g):sum(), { w })[1]
    end)
    local rows = x:permute(1, 3, 2, 4):reshape(b * t, h * d):clone()
    check(f(x, g:reshape(b, t, n), dc.zeros(("f32[%d, %d]"):format(h * d, n))), rows:transpose():clone(), g, n)
  end
end

function TestProducts.test_batches_of_turned_operands()
  local a, b = digits(6 * 20, 30, 1):reshape(6, 20, 30), digits(6 * 40, 30, 3):reshape(6, 40, 30)
  local f = dc.fn("products(a: f32[6, 20, 30], b: f32[6, 40, 30]) -> f32[6, 20, 40]", function(a, b)
    return a:matmul(b:transpose())
  end)
  local y = f(a, b)
  for i = 1, 6 do
    check(y[i], a[i], b[i]:transpose(), i)
  end
end

-- Several matrices read and written behind the sums, as an optimiser does.
-- Weights with a matrix for each head: two axes of theirs are no one axis of memory.
function TestProducts.test_a_matrix_for_each_head()
  for _, sizes in ipairs { { 16, 64, 8, 32 }, { 5, 33, 3, 16 }, { 64, 128, 4, 48 }, { 1, 20, 6, 8 }, { 37, 7, 2, 5 } } do
    local t, d, h, e = table.unpack(sizes)
    local x, w = digits(t, d, 1), digits(h * d, e, 2):reshape(h, d, e)
    local f = dc.fn(("f(x: f32[%d, %d], w: f32[%d, %d, %d]) -> f32[%d, %d, %d]"):format(t, d, h, d, e, t, h, e),
      function(x, w) return dc.einsum("t d, h d e -> t h e", x, w) end)
    local flat = dc.fn(("g(x: f32[%d, %d], w: f32[%d, %d]) -> f32[%d, %d]"):format(t, d, d, h * e, t, h * e),
      function(x, w) return x:matmul(w) end)
    lu.assertEquals(f(x, w):reshape(t, h * e):totable(), flat(x, w:permute(2, 1, 3):reshape(d, h * e)):totable())
  end
end

function TestProducts.test_updates()
  for _, size in ipairs { { 45, 530, 70 }, { 45, 784, 64 }, { 30, 100, 20 } } do
    local m, n, k = table.unpack(size)
    local x, g = digits(k, m, 1), digits(k, n, 2)
    local w, v = digits(m, n, 3), digits(m, n, 4)
    local text = ("update(x: f32[%d, %d], g: f32[%d, %d], w: f32[%d, %d], v: f32[%d, %d]) -> f32[%d, %d], f32[%d, %d]")
    local f = dc.fn(text:format(k, m, k, n, m, n, m, n, m, n, m, n), function(x, g, w, v)
      local sum = x:transpose():matmul(g)
      local next = v * 2 + sum
      return w - next * 4 + v, next
    end)
    local new, next = f(x, g, w, v)
    check(next - v * 2, x:transpose(), g, m .. " x " .. n)
    lu.assertEquals((new - (w - next * 4 + v)):abs():max():item(), 0)
  end
end

-- Rows picked by integers behind a product: they lie along the rows, which 23 has no tiles for, so the gather is a
-- kernel beside it, for every number of rows.
function TestProducts.test_gather_behind_a_product()
  local e, w = digits(50, 64, 1), digits(48, 64, 2)
  for _, rows in ipairs { 1, 7, 23, 24 } do
    local a, ids = digits(rows, 48, 3), (dc.iota(rows) * 7) % 50
    local text = "f(e: f32[50, 64], ids: i32[%d], a: f32[%d, 48], w: f32[48, 64]) -> f32[%d, 64]"
    local f = dc.fn(text:format(rows, rows, rows), function(e, ids, a, w) return e:take(ids) + a:matmul(w) end)
    check(f(e, ids, a, w) - e:take(ids), a, w, rows)
    local product = 0
    for i, k in ipairs(f:kernels()) do
      if k.name:match "^D_" then
        product = i
      end
    end
    if rows > 1 and dc.stats().device:match "^cpu" then
      lu.assertTrue(product > 0, "a product of its own")
      lu.assertNotStrContains(f:source(product, "nest"), "maximum(", false) -- indices are clamped where they pick
    end
  end
end
