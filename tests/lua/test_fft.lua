-- deepc.fft: sizes of every kind beside sums of their terms, gradients, loops and vmap, what is refused.
-- tests/peers/cases/fft.lua has all functions beside torch.fft.
local lu = require "luaunit"
local dc = require "deepc"
local fft = require "deepc.fft"

TestFft = {}

local function drawn(n, seed)
  return dc.complex(dc.randn(("f32[%d]"):format(n), { seed = seed }), dc.randn(("f32[%d]"):format(n),
    { seed = seed + 1 }))
end

-- The sums as they stand in the definition, in doubles.
local function by_terms(z, sign)
  local x, out = z:totable(), {}
  local n = #x
  for k = 0, n - 1 do
    local re, im = 0, 0
    for j = 0, n - 1 do
      local angle = 2 * math.pi * (j * k % n) / n
      local c, s = math.cos(angle), sign * math.sin(angle)
      re, im = re + x[j + 1][1] * c - x[j + 1][2] * s, im + x[j + 1][1] * s + x[j + 1][2] * c
    end
    out[k + 1] = { re, im }
  end
  return out
end

-- The largest difference, beside the root of the size.
local function off(got, want)
  local worst = 0
  for i, pair in ipairs(want) do
    for k = 1, 2 do
      worst = math.max(worst, math.abs(got[i][k] - pair[k]))
    end
  end
  return worst / math.sqrt(#want)
end

-- One stage, two, three; radices of every kind, and a size that has none.
function TestFft:test_sizes()
  for _, n in ipairs { 11, 16, 31, 48, 100, 127, 256, 512, 1000 } do
    local z = drawn(n, n)
    local f = dc.fn(("(x: c64[%d]) -> c64[%d], c64[%d]"):format(n, n, n), function(x) return fft.fft(x),
    fft.ifft(x) end)
    local up, down = f(z)
    lu.assertTrue(off(up:totable(), by_terms(z, -1)) < 2e-6, n)
    lu.assertTrue(off((down * n):totable(), by_terms(z, 1)) < 2e-6, n)
  end
end

-- Several rows at once, along each axis, in whole vectors and in less.
function TestFft:test_rows()
  local m = dc.complex(dc.randn("f32[40, 36, 3]", { seed = 5 }), dc.randn("f32[40, 36, 3]", { seed = 6 }))
  local f = dc.fn("(x: c64[40, 36, 3]) -> c64[40, 36, 3], c64[40, 36, 3], c64[40, 36, 3]", function(x)
    return fft.fft(x, { axis = 1 }), fft.fft(x, { axis = 2 }), fft.fft(x)
  end)
  local a, b, c = f(m)
  lu.assertTrue(off(a:permute(2, 3, 1)[7][2]:totable(), by_terms(m:permute(2, 3, 1)[7][2], -1)) < 1e-6)
  lu.assertTrue(off(b:permute(1, 3, 2)[40][3]:totable(), by_terms(m:permute(1, 3, 2)[40][3], -1)) < 1e-6)
  lu.assertTrue(off(c[9][36]:totable(), by_terms(m[9][36], -1)) < 1e-6)
end

-- As many rows as are one kernel: in blocks of rows side by side and one by one, whole blocks and a rest; what is read
-- may be computed where it is read.
function TestFft:test_many_rows()
  for _, case in ipairs { { 131, 60 }, { 128, 127 }, { 200, 8 }, { 9, 256 }, { 130, 512 }, { 129, 1000 } } do
    local m, n = case[1], case[2]
    local type = ("f32[%d, %d]"):format(m, n)
    local a, b = dc.randn(type, { seed = m }), dc.randn(type, { seed = n })
    local f = dc.fn(("(x: %s, y: %s)"):format(type, type), function(x, y)
      local turned = dc.complex(x:permute(2, 1), y:permute(2, 1))
      return fft.fft(dc.complex(x * 2, y)), fft.ifft(turned:permute(2, 1))
    end)
    local up, down = f(a, b)
    for _, row in ipairs(n > 500 and { 6, m } or { 1, 5, m - 1, m }) do
      lu.assertTrue(off(up[row]:totable(), by_terms(dc.complex(a[row] * 2, b[row]), -1)) < 4e-6, n)
      lu.assertTrue(off((down[row] * n):totable(), by_terms(dc.complex(a[row], b[row]), 1)) < 2e-6, n)
    end
  end
end

-- What is put together backwards is stored before it is transposed.
function TestFft:test_transposed()
  local z = dc.randn("f32[140, 60]", { seed = 3 })
  local rows = dc.fn("(x: f32[140, 60])", function(x) return fft.rfft(x) end)(z):totable()
  local f = dc.fn("(x: f32[140, 60])", function(x) return fft.rfft(x):transpose() end)
  local columns = f(z):totable()
  for i = 1, 140 do
    for k = 1, 31 do
      lu.assertEquals(columns[k][i], rows[i][k])
    end
  end
  if (os.getenv "DEEPC_DEVICE" or "cpu") == "cpu" then
    lu.assertStrContains(tostring(f:explain()), "transposed by its user, and read backwards")
  end
end

-- Along an axis behind which whole vectors lie.
function TestFft:test_many_columns()
  local z = dc.complex(dc.randn("f32[3, 60, 48]", { seed = 1 }), dc.randn("f32[3, 60, 48]", { seed = 2 })):clone()
  local f = dc.fn("(x: c64[3, 60, 48])", function(x) return fft.fft(x, { axis = 2 }) end)
  local got, rows = f(z):permute(1, 3, 2), z:permute(1, 3, 2)
  for _, at in ipairs { { 1, 1 }, { 2, 17 }, { 3, 48 } } do
    lu.assertTrue(off(got[at[1]][at[2]]:totable(), by_terms(rows[at[1]][at[2]], -1)) < 2e-6)
  end
end

-- Sizes known at run time, and f64.
function TestFft:test_many_rows_of_bounds()
  local f = dc.fn("(x: c128[b <= 140, 24])", function(x) return fft.fft(x) end)
  for _, b in ipairs { 140, 1, 77 } do
    local type = ("f64[%d, 24]"):format(b)
    local z = dc.complex(dc.randn(type, { seed = b }), dc.randn(type, { seed = b + 1 })):clone()
    lu.assertTrue(off(f(z)[b]:totable(), by_terms(z[b], -1)) < 1e-14, b)
  end
end

function TestFft:test_round_trip()
  local f = dc.fn("(x: f64[n]) -> f64[n]", function(x) return fft.irfft(fft.rfft(x), { n = x.shape[1] }) end)
  for _, n in ipairs { 1, 2, 9, 30, 74 } do
    local x = dc.randn(("f64[%d]"):format(n), { seed = n })
    lu.assertTrue((f(x) - x):abs():max():item() < 1e-13, n)
  end
end

-- The gradient is a transform with the other sign; of any order.
function TestFft:test_gradients()
  local f = dc.fn("(x: c128[12], y: c128[12]) -> c128[12], c128[12]", function(x, y)
    local g = dc.grad((fft.fft(x) * y):real():sum(), x)
    local cubes = (fft.fft(x):abs() ^ 3):sum()
    return g, dc.grad((dc.grad(cubes, x) * y):real():sum(), x)
  end)
  local x, y = drawn(12, 1):cast "c128", drawn(12, 3):cast "c128"
  local g, second = f(x, y)
  lu.assertTrue((g - fft.ifft(y:conj(), { norm = "forward" })):abs():max():item() < 1e-12)
  local function slope(v)
    local w = v:watch()
    return (dc.grad((fft.fft(w):abs() ^ 3):sum(), w) * y):real():sum():item()
  end
  local h = 1e-5
  for k = 1, 2 do
    local step = dc.zeros("f64[12, 2]"):put(3, dc.tensor({ k == 1 and h or 0, k == 2 and h or 0 },
    "f64")):view_as_complex()
    lu.assertAlmostEquals(second:totable()[3][k], (slope(x + step) - slope(x - step)) / (2 * h), 1e-3)
  end
end

function TestFft:test_loops_and_vmap()
  local m = dc.stack { drawn(12, 1), drawn(12, 3), drawn(12, 5) }
  local want = fft.fft(m)
  local f = dc.fn("(x: c64[m, n]) -> c64[m, n], c64[m, n]", function(x)
    local _, rows = dc.scan(function(c, row) return c, fft.fft(row) end, dc.zeros "f32[]", x)
    return dc.vmap(function(row) return fft.fft(row) end)(x), rows
  end)
  local a, b = f(m)
  lu.assertAlmostEquals((a - want):abs():max():item(), 0, 3e-6)
  lu.assertAlmostEquals((b - want):abs():max():item(), 0, 3e-6)
  local bounded = dc.fn("(x: c64[m <= 4, n]) -> c64[m, n]", function(x) return fft.fft(x) end)
  lu.assertAlmostEquals((bounded(m) - want):abs():max():item(), 0, 3e-6)
end

-- Cosine and sine transforms invert one another; in loops, by rows, of batches of any size, of other numbers.
function TestFft:test_cosines()
  local x = dc.randn("f64[3, 20]", { seed = 1 })
  for _, name in ipairs { "dct", "dst" } do
    for kind = 1, 4 do
      for _, norm in ipairs { "backward", "ortho", "forward" } do
        local options = { type = kind, norm = norm }
        local y = fft[name](x, options)
        lu.assertTrue((fft["i" .. name](y, options) - x):abs():max():item() < 1e-14, name .. kind .. norm)
        if norm == "ortho" then
          lu.assertAlmostEquals(y:square():sum():item() / x:square():sum():item(), 1, 1e-14)
        end
      end
    end
  end
  local f = dc.fn("(v: f64[m <= 4, n]) -> f64[m, n], f64[m, n]", function(v)
    return fft.dct(v), dc.vmap(function(row) return fft.dct(row) end)(v)
  end)
  for m = 1, 3 do
    local part = x[{ { 1, m } }]
    local a, b = f(part)
    lu.assertTrue((a - fft.dct(part)):abs():max():item() < 1e-14)
    lu.assertTrue((b - a):abs():max():item() < 1e-14)
  end
  lu.assertEquals(fft.dct(dc.tensor({ 1, 2 }, "i32")).dtype, "f32")
  lu.assertEquals(fft.dct(dc.tensor({ 0, 1 / 0 }, "f32")):isfinite():any():item(), false)
end

-- Tables are computed once, not at each call.
function TestFft:test_tables_are_kept()
  local f = dc.fn("(x: c64[512]) -> c64[512]", function(x) return fft.fft(x) end)
  local z = drawn(512, 1)
  f(z)
  local before = dc.stats().prologues
  f(z)
  f(z)
  lu.assertEquals(dc.stats().prologues, before)
end

function TestFft:test_refused()
  local x = dc.ones "f32[4]"
  lu.assertErrorMsgContains("a tensor is needed", fft.fft, 3)
  lu.assertErrorMsgContains("a scalar has no axis", fft.fft, dc.tensor(1))
  lu.assertErrorMsgContains('norm is "backward", "ortho" or "forward", not \'both\'', fft.fft, x, { norm = "both" })
  lu.assertErrorMsgContains("n is a whole number of at least 1, not 0", fft.fft, x, { n = 0 })
  lu.assertErrorMsgContains("dim", fft.fft, x, { dim = 1 })
  lu.assertErrorMsgContains("axis 3", fft.fft, x, { axis = 3 })
  lu.assertErrorMsgContains("rfft: c64[4]: a real number is needed", fft.rfft, x:cast "c64")
  lu.assertErrorMsgContains("has no elements", fft.fft, dc.zeros "f32[0]")
  lu.assertErrorMsgContains("axis 1 is given twice", fft.fft2, dc.ones "f32[2, 2]", { axes = { 1, -2 } })
  lu.assertErrorMsgContains("1 sizes for 2 axes", fft.fft2, dc.ones "f32[2, 2]", { axes = { 1, 2 }, s = { 4 } })
  lu.assertErrorMsgContains("n is a whole number", fft.fftfreq, 0)
  lu.assertErrorMsgContains("dct: type is 1, 2, 3 or 4, not 5", fft.dct, x, { type = 5 })
  lu.assertErrorMsgContains("idct: c64[4]: a real number is needed", fft.idct, x:cast "c64")
  lu.assertErrorMsgContains("dct: type 1 needs 2 elements at least; axis 1 of f32[1] has one", fft.dct,
    dc.ones "f32[1]", { type = 1 })
  lu.assertErrorMsgContains("dst: axis 1 of f32[n <= 8] has a size known at run time, and a fixed size is needed",
    dc.fn, "(v: f32[n <= 8]) -> f32[n]", function(v) return (fft.dst(v)) end)
  lu.assertErrorMsgContains("a fixed size is needed", function()
    dc.fn("(v: c64[n <= 8]) -> c64[n]", function(v) return fft.fft(v) end)(dc.ones "c64[3]")
  end)
end
