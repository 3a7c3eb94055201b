-- Contractions of few tiles or few rows and long sums, which devices of thread groups make in two steps. Elements are
-- small integers, so sums are exact in whatever order; 16-bit results are the f32 ones rounded once.
-- luacheck: ignore 432
local dc = require "deepc"
local lu = require "luaunit"

TestSplitProducts = {}

-- Digits -1 to 2 in an order that repeats late.
local function digits(t, count, salt)
  return dc.fn(("digits() -> %s[%d]"):format(t, count), function()
    local n = dc.iota(("i32[%d]"):format(count))
    return ((n * 7 + n // 11 + n // 101 + salt) % 4 - 1):cast(t)
  end)()
end

local function typed(t, a, b, y, turned)
  local left, right = turned:find "a" ~= nil, turned:find "b" ~= nil
  return ("f(a: %s[%d, %d], b: %s[%d, %d]) -> %s[%d, %d]"):format(t, a[left and 2 or 1], a[left and 1 or 2], t,
    b[right and 2 or 1], b[right and 1 or 2], y, a[1], b[2]), function(a, b)
    return (left and a:transpose() or a):matmul(right and b:transpose() or b)
  end
end

-- Sums of 50 terms at a time, of which no device makes two steps.
local function by_pieces(a, b, k)
  local y = 0
  for first = 1, k, 50 do
    local last = math.min(first + 49, k)
    y = y + a[{ {}, { first, last } }]:matmul(b[{ { first, last } }])
  end
  return y
end

local function try(m, n, k, t, turned)
  local what = ("%d x %d x %d %s %s"):format(m, n, k, t, turned)
  local a, b = digits(t, m * k, 1):reshape(m, k), digits(t, k * n, 2):reshape(k, n)
  local want = by_pieces(a:cast "f32", b:cast "f32", k)
  local type, body = typed(t, { m, k }, { k, n }, t, turned)
  local f = dc.fn(type, body)
  local y = f(turned:find "a" and a:transpose():clone() or a, turned:find "b" and b:transpose():clone() or b)
  lu.assertEquals(y:totable(), want:cast(t):totable(), what)
  return f
end

function TestSplitProducts.test_layouts_and_types()
  local turned = { "", "a", "b", "ab" }
  for i, size in ipairs { { 64, 32, 784 }, { 33, 10, 1001 }, { 1, 70, 515 }, { 70, 3, 640 }, { 8, 24, 512 } } do
    for j, t in ipairs { "f32", "f16", "bf16" } do
      local m, n, k = table.unpack(size)
      try(m, n, k, t, turned[(i + j) % 4 + 1])
      try(n, m, k, t, turned[(i + 3 * j + 1) % 4 + 1])
    end
  end
end

function TestSplitProducts.test_batches_and_what_stands_beside()
  local f = dc.fn("f(a: f32[3, 20, 601], b: f32[3, 601, 12], c: f32[12]) -> f32[3, 20, 12]", function(a, b, c)
    return ((a + a):matmul(b:maximum(0)) + c):maximum(0)
  end)
  local a, b = digits("f32", 3 * 20 * 601, 3):reshape(3, 20, 601), digits("f32", 3 * 601 * 12, 4):reshape(3, 601, 12)
  local c = digits("f32", 12, 5)
  local y = f(a, b, c)
  for i = 1, 3 do
    local want = (by_pieces(a[i] + a[i], b[i]:maximum(0), 601) + c):maximum(0)
    lu.assertEquals(y[i]:totable(), want:totable())
  end
end

function TestSplitProducts.test_gradients_of_a_layer()
  local f = dc.fn("f(x: f32[6, 90, 16], w: f32[16, 9], g: f32[6, 90, 9]) -> f32[6, 90, 16], f32[16, 9]",
    function(x, w, g)
      local d = dc.grad((x:matmul(w) * g):sum(), { x, w })
      return d[1], d[2]
    end)
  local x, w, g = digits("f32", 6 * 90 * 16, 6):reshape(6, 90, 16), digits("f32", 144, 7):reshape(16, 9),
    digits("f32", 6 * 90 * 9, 8):reshape(6, 90, 9)
  local dx, dw = f(x, w, g)
  lu.assertEquals(dx:reshape(540, 16):totable(), g:reshape(540, 9):matmul(w:transpose()):totable())
  lu.assertEquals(dw:totable(), by_pieces(x:reshape(540, 16):transpose(), g:reshape(540, 9), 540):totable())
end

function TestSplitProducts.test_same_bits_in_each_call()
  local f = dc.fn("f(a: f32[32, 900], b: f32[900, 40]) -> f32[32, 40]", function(a, b)
    return a:matmul(b)
  end)
  local a, b = dc.rand "f32[32, 900]", dc.rand "f32[900, 40]"
  lu.assertEquals(f(a, b):totable(), f(a, b):totable())
end
