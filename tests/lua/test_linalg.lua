-- deepc.linalg: beside itself (products give back what was taken apart), gradients of the second order by
-- differences, loops, rows of dc.vmap, bounded batches, 16-bit floats, empty matrices, tests of matrices. Beside the
-- peers: tests/peers.
local lu = require "luaunit"
local dc = require "deepc"
local linalg = require "deepc.linalg"
local lapack = require "tests.lua.lapack"

if lapack.missing then
  TestLinalg = { test_all = function() lu.skip(lapack.missing) end }
  return
end

TestLinalg = {}

local function near(a, b, tol, what)
  local off = (a:cast "f64" - b:cast "f64"):abs():max():item()
  lu.assertTrue(off <= (tol or 1e-5), ("%s: off by %g"):format(what or "", off))
end

local function definite(seed, type)
  local x = dc.randn(type or "f64[3, 3]", { seed = seed })
  return (x:matmul(x:transpose()) + dc.eye(("%s[%d, %d]"):format(x.dtype, #x, #x))):clone()
end

-- Of a symmetric matrix one with complex eigenvalues.
local function twisted(a)
  return a + dc.tensor({ { 0, 3, 0 }, { -3, 0, 2 }, { 0, -2, 0 } }, a.dtype)
end

-- Scalar functions that no sign or phase of a vector changes.
local functions = {
  eig = function(a)
    local w, v = linalg.eig(twisted(a))
    return ((v:abs() ^ 4):sum(1) * w:abs()):sum() + w:imag():square():sum()
  end,
  eigvals = function(a)
    local w = linalg.eigvals(twisted(a))
    return w:exp():real():sum() + w:imag():square():sum()
  end,
  solve = function(a, b) return linalg.solve(a, b):square():sum() end,
  inv = function(a) return linalg.inv(a):square():sum() end,
  det = function(a) return linalg.det(a):square() end,
  slogdet = function(a) return select(2, linalg.slogdet(a)):square() end,
  cholesky = function(a) return linalg.cholesky(a):square():sum() * linalg.cholesky(a):sum() end,
  triangular_solve = function(a, b) return linalg.triangular_solve(a, b, { transposed = true }):square():sum() end,
  lu = function(a)
    local _, l, u = linalg.lu(a)
    return l:square():sum() * u:square():sum()
  end,
  qr = function(a)
    local q, r = linalg.qr(a)
    return (q ^ 4):sum() * r:square():sum()
  end,
  eigh = function(a)
    local w, v = linalg.eigh(a)
    return ((v ^ 4):sum(1) * w):sum()
  end,
  eigvalsh = function(a) return (linalg.eigvalsh(a) ^ 3):sum() end,
  svd = function(a)
    local u, s, vh = linalg.svd(a)
    return ((u ^ 4):sum(1) * s * (vh ^ 4):sum(2)):sum()
  end,
  svdvals = function(a) return (linalg.svdvals(a) ^ 3):sum() end,
  pinv = function(a) return linalg.pinv(a):square():sum() end,
  lstsq = function(a, b) return linalg.lstsq(a, b):square():sum() end,
  matrix_exp = function(a) return linalg.matrix_exp(a * 0.1):square():sum() end,
  lu_solve = function(a, b)
    local lu_, rows = linalg.lu_factor(a)
    return linalg.lu_solve(lu_, rows, b):square():sum()
  end,
}

-- A derivative along one direction of the gradient along another one, beside differences of gradients.
function TestLinalg:test_second_gradients()
  local b = dc.randn("f64[3]", { seed = 5 }):clone()
  local p, q = dc.randn("f64[3, 3]", { seed = 6 }):clone(), dc.randn("f64[3, 3]", { seed = 7 }):clone()
  p, q = p + p:transpose(), q + q:transpose()
  local a, h = definite(1), 1e-4
  for name, f in pairs(functions) do
    local both = dc.fn("both(x: f64[3, 3]) -> f64[], f64[], f64[]", function(x)
      local y = f(x, b)
      local first = (dc.grad(y, x) * p):sum()
      return y, first, (dc.grad(first, x, { unused = "zero" }) * q):sum()
    end)
    local _, first, second = both(a)
    local forth, back = both(a + p * h), both(a - p * h)
    near(first, (forth - back) / (2 * h), 2e-5 * math.max(1, math.abs(first:item())), name)
    local _, up = both(a + q * h)
    local _, down = both(a - q * h)
    near(second, (up - down) / (2 * h), 2e-5 * math.max(1, math.abs(second:item())), name .. ", second")
  end
end

-- Lazily, in a typed function, by rows of dc.vmap and one after the other.
function TestLinalg:test_rows_and_loops()
  local a = dc.stack { definite(1), definite(2), definite(3) }:clone()
  local b = dc.randn("f64[3, 3]", { seed = 9 }):clone()
  for name, f in pairs(functions) do
    local want = {}
    for i = 1, 3 do
      want[i] = f(a[i], b[i])
    end
    want = dc.stack(want)
    near(dc.vmap(f)(a, b), want, 1e-9, name .. ", lazily")
    local rows, steps = dc.fn("g(x: f64[3, 3, 3], y: f64[3, 3]) -> f64[3], f64[3], f64[3, 3, 3]", function(x, y)
      local each = dc.vmap(f)(x, y)
      return each, dc.map(function(v) return f(v.a, v.b) end, { a = x, b = y }), dc.grad(each:sum(), x)
    end)(a, b)
    near(rows, want, 1e-9, name .. ", compiled")
    near(steps, want, 1e-9, name .. ", in a loop")
  end
end

-- One side for all matrices, and many sides of one.
function TestLinalg:test_batches_stretch()
  local a, b = dc.stack { definite(1), definite(2) }:clone(), dc.randn("f64[3, 2]", { seed = 3 }):clone()
  local x = linalg.solve(a, b)
  near(a:matmul(x), b:expand(2, 3, 2), 1e-12)
  local sides = dc.randn("f64[2, 4, 3, 2]", { seed = 3 }):clone()
  for _, solve in ipairs { linalg.solve, function(m, y)
    return linalg.cholesky_solve(linalg.cholesky(m), y)
  end, function(m, y)
    local f, rows = linalg.lu_factor(m)
    return linalg.lu_solve(f, rows, y)
  end, linalg.lstsq } do
    near(a[1]:matmul(solve(a[1], sides)), sides, 1e-11)
    near(a:reshape(2, 1, 3, 3):matmul(solve(a:reshape(2, 1, 3, 3), sides)), sides, 1e-11)
  end
  local row = linalg.triangular_solve(a[1], sides:transpose(), { left = false, upper = true })
  near(row:matmul(a[1]:triu()), sides:transpose(), 1e-11)
end

function TestLinalg:test_bounded_batches()
  local f = dc.fn("f(a: f64[n <= 4, 3, 3], b: f64[n, 3]) -> f64[n, 3], f64[n], f64[n, 3], f64[n, 3, 3], f64[n, 3, 3]",
    function(a, b)
      local x = linalg.solve(a, b)
      local w, v = linalg.eigh(a)
      return x, linalg.det(a), w, v:square(), dc.grad(x:square():sum() + linalg.svdvals(a):sum(), a)
    end)
  local a, b = dc.stack { definite(1), definite(2), definite(3) }:clone(), dc.ones "f64[3, 3]"
  for n = 1, 3 do
    local part = a[{ { 1, n } }]:clone():watch()
    local x, d, w, v, g = f(part, b[{ { 1, n } }])
    local values, vectors = linalg.eigh(part)
    near(x, linalg.solve(part, b[{ { 1, n } }]), 1e-12)
    near(d, linalg.det(part), 1e-10)
    near(w, values, 1e-12)
    near(v, vectors:square(), 1e-12)
    near(g, dc.grad(linalg.solve(part, b[{ { 1, n } }]):square():sum() + linalg.svdvals(part):sum(), part), 1e-11)
  end
  lu.assertErrorMsgContains("solve: matrix 2 is singular", f, dc.stack { a[1], a[1] * 0 }, b[{ { 1, 2 } }])
end

function TestLinalg:test_any_eigenvalues()
  local a = dc.randn("f64[2, 5, 5]", { seed = 1 })
  local w, v = linalg.eig(a)
  lu.assertEquals({ w.dtype, v.dtype, w.shape, v.shape }, { "c128", "c128", { 2, 5 }, { 2, 5, 5 } })
  local wide = a:cast "c128"
  near((wide:matmul(v) - v * w:reshape(2, 1, 5)):abs(), dc.zeros "f64[2, 5, 5]", 1e-12)
  near(v:abs():square():sum(2), dc.ones "f64[2, 5]", 1e-12)
  near((w - linalg.eigvals(a)):abs(), dc.zeros "f64[2, 5]", 1e-12)
  near(w:sum(-1):real(), dc.einsum("b i i -> b", a), 1e-12)
  lu.assertEquals(linalg.eigvals(a:cast "f16").dtype, "c64")
  lu.assertEquals(linalg.eigvals(dc.tensor { { 2, 0 }, { 0, 3 } }):real():totable(), { 2, 3 })
  local f = dc.fn("f(x: f32[n <= 4, 2, 2]) -> c64[n, 2]", function(x)
    local y = linalg.eigvals(x)
    return y
  end)
  lu.assertEquals(f(dc.tensor { { { 0, -1 }, { 1, 0 } } }):imag():totable(), { { 1, -1 } })
  lu.assertEquals(linalg.eig(dc.zeros "f32[2, 0, 0]").shape, { 2, 0 })
  lu.assertTrue(linalg.eigvals(dc.full("f32[2, 2]", math.huge), { check = false }):real():isnan():all():item())
end

-- What is behind the size of a batch is not looked at.
function TestLinalg:test_tests_end_at_the_size()
  local f = dc.fn("f(a: f64[n <= 4, 2, 2]) -> f64[n, 2, 2]", function(a)
    local y = linalg.cholesky(a)
    return y
  end)
  lu.assertErrorMsgContains("matrix 3 is not positive definite", f, dc.full("f64[4, 2, 2]", -1):put({ { 1, 2 } },
    dc.eye("f64[2, 2]"):reshape(1, 2, 2):expand(2, 2, 2)))
  near(f(dc.eye("f64[2, 2]"):reshape(1, 2, 2)), dc.eye("f64[2, 2]"):reshape(1, 2, 2))
end

function TestLinalg:test_short_floats()
  local a = definite(1):cast "f32"
  for _, dtype in ipairs { "f16", "bf16" } do
    local s = a:cast(dtype)
    for name, f in pairs { inv = linalg.inv, cholesky = linalg.cholesky, svdvals = linalg.svdvals, det = linalg.det,
      matrix_exp = linalg.matrix_exp, pinv = linalg.pinv, norm = linalg.norm, cond = linalg.cond,
      eigvalsh = linalg.eigvalsh } do
      local y = f(s)
      lu.assertEquals(y.dtype, dtype, name)
      lu.assertEquals(y:totable(), f(s:cast "f32"):cast(dtype):totable(), name)
    end
    lu.assertEquals(linalg.solve(s, s[1]).dtype, dtype)
    lu.assertEquals(linalg.matrix_rank(s).dtype, "i32")
  end
end

function TestLinalg:test_names_stay()
  local a, b = definite(1):reshape "[m=3, n=3]", dc.ones("f64[3, 2]"):reshape "[m=3, k=2]"
  local function text(x)
    local _, err = pcall(dc.add, x, dc.zeros "f64[9, 9, 9]")
    return tostring(err):match "f64%[[%a=, %d]*%]"
  end
  lu.assertEquals(text(linalg.solve(a, b)), "f64[n=3, k=2]")
  lu.assertEquals(text(linalg.inv(a)), "f64[n=3, m=3]")
  lu.assertEquals(text(linalg.cholesky(a)), "f64[m=3, n=3]")
  lu.assertEquals(text(linalg.lstsq(a, b)), "f64[n=3, k=2]")
  lu.assertEquals(text(linalg.eigvalsh(a:reshape "[batch=1, 3, 3]")), "f64[batch=1, 3]")
end

-- Vectors beyond those that the matrix determines.
function TestLinalg:test_square_factors()
  local f = dc.fn("f(a: f64[n <= 8, 5, 2]) -> f64[n, 5, 5], f64[n, 5, 2]", function(a)
    local q, r = linalg.qr(a, { mode = "complete" })
    local u, s, vh = linalg.svd(a, { full = true })
    local middle = dc.pad(dc.einsum("... i, ... i j -> ... i j", s, vh), { [-2] = { 0, 3 } })
    return u:matmul(u:transpose()) - q:matmul(q:transpose()), u:matmul(middle) - q:matmul(r)
  end)
  local a = dc.randn("f64[3, 5, 2]", { seed = 1 })
  for _, y in ipairs { f(a) } do
    near(y, y * 0, 1e-13)
  end
  near((linalg.qr(dc.zeros "f64[2, 3, 0]", { mode = "complete" })), dc.eye("f64[3, 3]"):expand(2, 3, 3))
  lu.assertEquals(#linalg.qr(dc.zeros "f64[0, 3]", { mode = "complete" }).shape, 2)
  local u, s, vh = linalg.svd(dc.zeros "f32[0, 3]", { full = true })
  lu.assertEquals({ u.shape, s.shape, vh:totable() }, { { 0, 0 }, { 0 }, dc.eye("f32[3, 3]"):totable() })
  local rows = dc.vmap(function(x) return (linalg.qr(x, { mode = "complete" })) end)(a)
  near(rows[2], (linalg.qr(a[2], { mode = "complete" })), 1e-14)
  local p = dc.param(a[1])
  lu.assertErrorMsgContains('qr: with mode "complete" there is no gradient where there are more rows than columns',
    dc.grad, linalg.qr(p, { mode = "complete" }):sum(), p)
  lu.assertErrorMsgContains('qr: mode is "reduced", "complete" or "r", not \'full\'', linalg.qr, a, { mode = "full" })
  lu.assertErrorMsgContains("svd: full is true or false, not 1", linalg.svd, a, { full = 1 })
end

function TestLinalg:test_nothing()
  local a = dc.zeros "f32[2, 0, 0]"
  lu.assertEquals(linalg.det(a):totable(), { 1, 1 })
  lu.assertEquals(linalg.inv(a).shape, { 2, 0, 0 })
  lu.assertEquals(linalg.cholesky(a).shape, { 2, 0, 0 })
  lu.assertEquals(linalg.solve(a, dc.zeros "f32[2, 0, 3]").shape, { 2, 0, 3 })
  lu.assertEquals(linalg.svdvals(dc.zeros "f32[0, 3]").shape, { 0 })
  lu.assertEquals(linalg.eigvalsh(a).shape, { 2, 0 })
  lu.assertEquals(linalg.pinv(dc.zeros "f32[0, 3]").shape, { 3, 0 })
  lu.assertEquals(linalg.lstsq(dc.zeros "f32[0, 2]", dc.zeros "f32[0, 1]"):totable(), { { 0 }, { 0 } })
  lu.assertEquals(linalg.matrix_rank(dc.zeros "f32[0, 3]"):item(), 0)
  lu.assertEquals(linalg.matrix_exp(a).shape, { 2, 0, 0 })
  lu.assertEquals(linalg.solve(dc.zeros "f32[0, 3, 3]", dc.zeros "f32[0, 3]").shape, { 0, 3 })
end

-- One matrix a test finds fault with, and what comes out without the test.
function TestLinalg:test_faults()
  local singular = dc.tensor { { 1, 2 }, { 2, 4 } }
  local nan = singular * (0 / 0)
  local all = {
    { "solve: the matrix is singular", linalg.solve, singular, dc.ones "f32[2]" },
    { "inv: the matrix is singular", linalg.inv, singular },
    { "triangular_solve: the matrix is singular", linalg.triangular_solve, singular * 0, dc.ones "f32[2]" },
    { "matrix_power: the matrix is singular", linalg.matrix_power, singular, -1 },
    { "cholesky: the matrix is not positive definite", linalg.cholesky, -singular },
    { "eigh: the matrix has an infinity or NaN", linalg.eigh, nan },
    { "svd: the matrix has an infinity or NaN", linalg.svd, nan },
    { "eig: the matrix has an infinity or NaN", linalg.eig, nan },
    { "eigvals: the matrix has an infinity or NaN", linalg.eigvals, nan },
    { "svd: the matrix has an infinity or NaN", linalg.svd, nan, { full = true } },
    { "pinv: the matrix has an infinity or NaN", linalg.pinv, nan },
    { "lstsq: the matrix has an infinity or NaN", linalg.lstsq, nan, dc.ones "f32[2]" },
    { "matrix_norm: the matrix has an infinity or NaN", linalg.matrix_norm, nan, "nuc" },
    { "cond: the matrix has an infinity or NaN", linalg.cond, nan },
  }
  for _, row in ipairs(all) do
    lu.assertErrorMsgContains(row[1], row[2], table.unpack(row, 3))
  end
  lu.assertFalse(linalg.solve(singular, dc.ones "f32[2]", { check = false }):isfinite():any():item())
  lu.assertTrue(linalg.cholesky(-singular, { check = false }):isnan():all():item())
  lu.assertTrue((linalg.eigh(nan, { check = false })):isnan():all():item())
  lu.assertTrue(linalg.matrix_norm(nan, "nuc", { check = false }):isnan():item())
end

-- What no library computes from: a NaN behind the first pivot, pivots without a finite reciprocal.
function TestLinalg:test_pivots()
  for _, row in ipairs { { "f32", 0x1p-128, 0x1p-126 }, { "f64", 0x1p-1024, 0x1p-1022 } } do
    local dtype, least, fine = table.unpack(row)
    local function matrix(a, b, c, d) return dc.tensor({ { a, b }, { c, d } }, dtype) end
    local ones, nan = dc.ones(dtype .. "[2]"), 0 / 0
    for _, a in ipairs { matrix(1, 0, 0, nan), matrix(1, 0, nan, 1), matrix(nan, 0, 0, 1) } do
      lu.assertErrorMsgContains("cholesky: the matrix is not positive definite", linalg.cholesky, a)
      lu.assertTrue(linalg.cholesky(a, { check = false }):isnan():all():item())
    end
    for _, a in ipairs { matrix(least, 1, least, 2), matrix(least, 0, 0, 1), matrix(1, 0, 0, -least / 4) } do
      lu.assertErrorMsgContains("solve: the matrix is singular", linalg.solve, a, ones)
      lu.assertErrorMsgContains("inv: the matrix is singular", linalg.inv, a)
    end
    lu.assertErrorMsgContains("triangular_solve: the matrix is singular", linalg.triangular_solve,
      matrix(least, 0, 0, 1), ones)
    lu.assertEquals(linalg.solve(matrix(fine, 0, 0, -fine), ones * fine):totable(), { 1, -1 })
    lu.assertEquals(linalg.triangular_solve(matrix(1, 0, 0, fine), ones * fine):totable(), { fine, 1 })
  end
end

-- A function that tests matrices is one executable, and a call that fails changes nothing.
function TestLinalg:test_steps()
  local p = dc.param("f32[2]", dc.zeros "f32[2]")
  local f = dc.fn("f(a: f32[2, 2]) -> f32[2]", function(a)
    local x = linalg.solve(a, p + 1)
    p:set(x)
    return x
  end)
  f(dc.eye "f32[2, 2]")
  lu.assertErrorMsgContains("solve: the matrix is singular", f, dc.ones "f32[2, 2]")
  lu.assertEquals(p:totable(), { 1, 1 })
  lu.assertEquals(f(dc.eye "f32[2, 2]"):totable(), { 2, 2 })
end

function TestLinalg:test_without_lapack()
  local program = require "tests.lua.program"
  local text, status = program.run([[-e 'require("deepc.linalg").inv(require("deepc").ones "f32[1, 1]")']],
    "DEEPC_LAPACK=/nonexistent")
  lu.assertStrContains(text, "inv: /nonexistent, which DEEPC_LAPACK names, cannot be opened")
  lu.assertEquals(status, 1)
end

-- Zeros that calls give to `deepc check` are no singular matrices of the script.
function TestLinalg:test_in_a_check()
  local program = require "tests.lua.program"
  local path = program.script [[
local dc, linalg = require "deepc", require "deepc.linalg"
local f = dc.fn("f(x: f32[2, 2]) -> f32[2, 2]", function(x) return x + dc.eye "f32[2, 2]" end)
print(linalg.solve(f(dc.eye "f32[2, 2]"), dc.ones "f32[2]"), linalg.cholesky(f(dc.eye "f32[2, 2]")))
]]
  local text, status = program.run("check " .. path)
  os.remove(path)
  lu.assertEquals(status, 0, text)
end

-- Exponentials of rotations are rotations, however large.
function TestLinalg:test_matrix_exp()
  for _, t in ipairs { 1e-9, 0.1, 1, 10, 1000 } do
    local y = linalg.matrix_exp(dc.tensor({ { 0, t }, { -t, 0 } }, "f64"))
    local want = dc.tensor({ { math.cos(t), math.sin(t) }, { -math.sin(t), math.cos(t) } }, "f64")
    near(y, want, 1e-13 * math.max(1, t), t)
  end
  local n = dc.tensor({ { 0, 1, 2 }, { 0, 0, 3 }, { 0, 0, 0 } }, "f64")
  lu.assertAlmostEquals(linalg.matrix_exp(n)[1][3]:item(), 2 + 1.5, 1e-14)
end
