-- Complex tensors: typed functions, states, loops, bounded dims, gradients, text, files. In
-- tests/peers/cases/complex.lua each operation stands beside that of PyTorch or NumPy.
local lu = require "luaunit"
local dc = require "deepc"

TestComplex = {}

local function c(...)
  local re, im = {}, {}
  for i, pair in ipairs { ... } do
    re[i], im[i] = pair[1], pair[2]
  end
  return dc.complex(dc.tensor(re), dc.tensor(im))
end

local function near(got, want, margin)
  local a, b = got:view_as_real():flatten():totable(), want:view_as_real():flatten():totable()
  lu.assertEquals(got.dtype, want.dtype)
  lu.assertEquals(got.shape, want.shape)
  for i = 1, #b do
    lu.assertAlmostEquals(a[i], b[i], margin or 1e-5)
  end
end

local z = c({ 1, 4 }, { 2, -5 }, { 3, 0 })

function TestComplex:test_text_and_values()
  lu.assertEquals(tostring(z), "  1.0+4.0j  2.0-5.0j  3.0+0.0j\nc64[3]")
  lu.assertEquals(tostring(z[2]), "2.0-5.0j")
  lu.assertEquals(tostring(dc.complex(0 / 0, -math.huge)), "nan-infj")
  lu.assertEquals(tostring(dc.zeros "c128[0]"), "c128[0]")
  lu.assertEquals(tostring(dc.full("c64[2, 2]", 1.5)), "  1.5+0.0j  1.5+0.0j\n  1.5+0.0j  1.5+0.0j\nc64[2, 2]")
  lu.assertEquals({ z[2]:item() }, { 2, -5 })
  lu.assertEquals(z:totable(), { { 1, 4 }, { 2, -5 }, { 3, 0 } })
  lu.assertEquals(dc.complex(dc.tensor(1), dc.tensor(2)):totable(), { 1, 2 })
  lu.assertEquals(dc.tensor({ 1, 2 }, "c64"):totable(), { { 1, 0 }, { 2, 0 } })
  lu.assertEquals(z:clone():totable(), z:totable())
end

-- What stands in memory as it is, is looked at there.
function TestComplex:test_views()
  local m = dc.iota("f32[2, 3, 2]", 3):view_as_complex() + dc.complex(dc.iota("f32[2, 3]", 1), dc.iota("f32[2, 3]", 2))
  lu.assertEquals(m:real():totable(), { { 0, 0, 0 }, { 1, 1, 1 } })
  lu.assertEquals(m:transpose():imag():totable(), { { 1, 1 }, { 2, 2 }, { 3, 3 } })
  lu.assertEquals(m[2]:flip(1):imag():totable(), { 3, 2, 1 })
  lu.assertEquals(m:reshape(6)[4]:totable(), { 1, 1 })
  lu.assertEquals(m:view_as_real().shape, { 2, 3, 2 })
  local large = dc.complex(dc.iota("f32[64, 64]", 1), dc.iota("f32[64, 64]", 2))
  lu.assertEquals(large:transpose()[3][5]:totable(), { 4, 2 })
  lu.assertEquals((large:transpose() * 2)[3][5]:totable(), { 8, 4 })
end

function TestComplex:test_typed_functions()
  local f = dc.fn("f(x: c64[n], y: c64[]) -> c64[n], f32[n], c64[]", function(x, y)
    return x * y, x:abs(), x:sum()
  end)
  local a, b, s = f(z, dc.complex(0, 1))
  near(a, c({ -4, 1 }, { 5, 2 }, { 0, 3 }))
  lu.assertEquals(b.dtype, "f32")
  lu.assertEquals(s:totable(), { 6, -1 })
  near((f(z, 2)), z * 2) -- a number for a scalar
  near((f({ 1, 2 }, 2)), c({ 2, 0 }, { 4, 0 }))
  near((f(z, 3)), z * 3)
  lu.assertErrorMsgContains("is f32[3]", f, dc.ones "f32[3]", 1)
  local captured = dc.fn("(x: c64[n]) -> c64[n]", function(x) return x + z end)
  near(captured(z), z * 2)
  local g = dc.fn("(x: c64[rows, 2]) -> c64[rows, 2]", function(x) return x:conj() end)
  near(g(dc.stack({ z[{ 1 }], z[{ 2 }] }):reshape "[1, 2]"), dc.stack({ z[1], z[2] }):conj():reshape "[1, 2]")
end

function TestComplex:test_bounded()
  local f = dc.fn("(x: c64[2, t <= 8]) -> c64[2, t], c64[2], c64[2, t], f32[2, t]", function(x)
    return x * x, x:sum(2), x:flip(2), x:abs()
  end)
  local x = dc.stack { z, z * 2 }
  local square, sum, turned, size = f(x)
  near(square, x * x)
  near(sum, x:sum(2))
  near(turned, x:flip(2))
  lu.assertEquals(size.shape, { 2, 3 })
  local less = x:split({ 2, 1 }, 2)
  near((f(less)), less * less)
end

function TestComplex:test_cells()
  local s = dc.state "c64[2]"
  s:set { 1, 2 }
  s:set(s + 1)
  lu.assertEquals(s:totable(), { { 2, 0 }, { 3, 0 } })
  s:set(3)
  lu.assertEquals(s:totable(), { { 3, 0 }, { 3, 0 } })
  local grows = dc.state "c64[t <= 4]"
  grows:set(z)
  near(grows * 1, z)
  local f = dc.fn("(x: c64[]) -> c64[]", function(x)
    s:set(s * x)
    return s:sum()
  end)
  near(f(dc.complex(0, 1)), dc.complex(0, 6))
  near(f(dc.complex(0, 1)), dc.complex(-6, 0))
  near(s * 1, c({ -3, 0 }, { -3, 0 }))
end

function TestComplex:test_loops_and_branches()
  local f = dc.fn("(x: c64[n]) -> c64[], c64[n]", function(x)
    return dc.scan(function(carry, e)
      local next = carry * dc.complex(0, 1) + e
      return next, next:conj()
    end, dc.zeros "c64[]", x)
  end)
  local last, all = f(z)
  local want, list = dc.complex(0, 0), {}
  for i = 1, 3 do
    want = want * dc.complex(0, 1) + z[i]
    list[i] = want:conj()
  end
  near(last, want)
  near(all, dc.stack(list))
  local g = dc.fn("(x: c64[n], t: bool[]) -> c64[n]", function(x, t)
    return dc.cond(t, function() return x * 2 end, function() return x:conj() end)
  end)
  near(g(z, true), z * 2)
  near(g(z, false), z:conj())
  local x = dc.stack { z, z:conj() }
  near(dc.vmap(function(a) return a * a:sum() end)(x), dc.stack { z * z:sum(), z:conj() * z:conj():sum() })
  local h = dc.fn("(a: c64[m, n]) -> c64[m, n]", function(a) return dc.vmap(function(b) return b * b:sum() end)(a) end)
  near(h(x), dc.stack { z * z:sum(), z:conj() * z:conj():sum() })
end

-- dL/dre + i dL/dim by central differences, for what is computed, too, and of loops.
function TestComplex:test_gradients()
  local function loss(x)
    local y = x * x + dc.complex(1, -2):cast "c128"
    local r = dc.scan(function(carry, e) return carry * e + 1, carry end, dc.ones "c128[]", y / 8)
    return (y:exp() / (x + 3) + r):abs():sum() + y:log():imag():sum()
  end
  local x = z:cast "c128" / 4
  local f = dc.fn("(v: c128[3]) -> c128[3]", function(v) return dc.grad(loss(v), v) end)
  local got, lazily = f(x), dc.grad(loss(x:watch()), x:watch(), { unused = "zero" })
  lu.assertEquals(lazily:totable()[1], { 0, 0 }) -- another start than that of the loss
  local w = x:watch()
  near(dc.grad(loss(w), w), got, 1e-10)
  local h = 1e-6
  for i = 1, 3 do
    for k = 1, 2 do
      local step = dc.full("f64[3, 2]", 0):put(i, dc.tensor({ k == 1 and h or 0, k == 2 and h or 0 },
        "f64")):view_as_complex()
      local slope = (loss(x + step):item() - loss(x - step):item()) / (2 * h)
      lu.assertAlmostEquals(got:totable()[i][k], slope, 1e-6)
    end
  end
  -- for a value between, which is put together from parts
  local g = dc.fn("(v: c64[3]) -> c64[3], f32[3]", function(v)
    local re = v:real() * 2
    local y = dc.complex(re, v:imag())
    return dc.grad((y * y):real():sum() + re:sum(), { y, re })[1], dc.grad((y * y):real():sum() + re:sum(), re)
  end)
  local of_y, of_re = g(z)
  near(of_y, dc.complex(z:real() * 4, z:imag() * -2))
  lu.assertEquals(of_re:totable(), (z:real() * 4 + 1):totable())
  near(dc.grad(z:watch():abs():sum(), z:watch(), { unused = "zero" }), z * 0)
  local zero = dc.zeros("c64[1]"):watch()
  lu.assertEquals(dc.grad(zero:abs():sum(), zero):totable(), { { 0, 0 } })
end

function TestComplex:test_second_order_and_custom()
  local f = dc.fn("(x: c64[3]) -> c64[3]", function(x)
    local g = dc.grad((x * x * x):real():sum(), x)
    return dc.grad(g:real():sum(), x)
  end)
  near(f(z), z:conj() * 6, 1e-4)
  local square = dc.custom_grad(function(a) return a * a end, function(dy, _, a) return dy * a:conj() * 2 end)
  local own = dc.fn("(x: c64[3]) -> c64[3]", function(x) return dc.grad(square(x):abs():sum(), x) end)
  local w = z:watch()
  near(own(z), dc.grad((w * w):abs():sum(), w), 1e-4)
end

function TestComplex:test_files()
  local path = os.tmpname()
  dc.save(path, { z = z, w = z:cast "c128" })
  local back = dc.load(path)
  os.remove(path)
  near(back.z, z)
  near(back.w, z:cast "c128")
end

-- Draws of the variance 1, half of it in each part.
function TestComplex:test_draws()
  for _, dtype in ipairs { "c64", "c128" } do
    local x = dc.randn(dtype .. "[n=40000, 2]", { seed = 3 })
    lu.assertEquals({ x.dtype, x.shape, x:size "n" }, { dtype, { 40000, 2 }, 40000 })
    lu.assertAlmostEquals(x:var():item(), 1, 0.02)
    lu.assertAlmostEquals(x:real():var():item(), 0.5, 0.01)
    lu.assertAlmostEquals((x:real() * x:imag()):mean():item(), 0, 0.01)
    local far = dc.randn(dtype .. "[20000]", { mean = 3, std = 0.1, seed = 4 })
    lu.assertAlmostEquals(far:real():mean():item(), 3, 0.003)
    lu.assertAlmostEquals(far:imag():mean():item(), 0, 0.003)
    lu.assertAlmostEquals(far:std():item(), 0.1, 0.003)
    local even = dc.rand(dtype .. "[20000]", { low = -1, high = 3, seed = 5 })
    lu.assertAlmostEquals(even:mean():abs():item(), math.sqrt(2), 0.03)
    lu.assertTrue(even:imag():ge(-1):all():item() and even:imag():lt(3):all():item())
  end
  local f = dc.fn("f(x: c64[n <= 4]) -> c64[n], c64[n]", function(x) return dc.randn(x, { seed = 1 }), dc.randn(x) end)
  local seeded, first = f(dc.zeros "c64[3]")
  near(seeded, dc.randn("c64[3]", { seed = 1 }))
  local _, second = f(dc.zeros "c64[3]")
  lu.assertNotEquals(first:totable(), second:totable())
end

function TestComplex:test_running_products()
  local x = dc.randn("c128[4, 300]", { seed = 1 })
  local want, at = {}, dc.complex(dc.ones "f64[4]", dc.zeros "f64[4]")
  for k = 1, 300 do
    at = at * x[{ {}, k }]
    want[k] = at
  end
  want = dc.stack(want, 2)
  local f = dc.fn("f(v: c128[m <= 8, n]) -> c128[m, n], c128[m, n], c128[m, n]", function(v)
    return v:cumprod(2), dc.vmap(function(row) return row:cumprod(1) end)(v), v:transpose():cumprod(1):transpose()
  end)
  for _, y in ipairs { f(x) } do
    lu.assertTrue(((y - want):abs() / want:abs()):max():item() < 1e-13)
  end
  local long = dc.fn("g(v: c64[n <= 9]) -> c64[n]", function(v)
    local y = v:cumprod(1)
    return y
  end)
  for n = 1, 9 do
    local part = dc.full("f32[" .. n .. "]", 1):cast "c64" * dc.complex(0, 1)
    near(long(part)[n], dc.complex(math.cos(n * math.pi / 2), math.sin(n * math.pi / 2)))
  end
end

function TestComplex:test_refused()
  for _, name in ipairs { "max", "lt", "relu", "floor", "softmax", "cummax", "clamp", "argmax",
    "logsumexp",
    "bit_and", "mod", "tanh", "log1p" } do
    local second = (name == "lt" or name == "mod" or name == "bit_and") and z or name == "clamp" and 0 or
      (name == "softmax" or name == "argmax" or name:match "^cum") and 1 or nil
    lu.assertErrorMsgContains("c64[3]: a real number is needed", z[name], z, second)
  end
  lu.assertErrorMsgContains("add: dtypes differ: c64[3] and f32[3]", dc.add, z, dc.ones "f32[3]")
  lu.assertErrorMsgContains("mul: dtypes differ: c64[3] and c128[3]", dc.mul, z, dc.ones "c128[3]")
  lu.assertErrorMsgContains("f32 holds no complex numbers: :real()", z.cast, z, "f32")
  lu.assertErrorMsgContains("grad: c64[]: a real number is needed", dc.grad, z:sum(), z)
  lu.assertErrorMsgContains("complex: f16[2]: f32 or f64 is needed", dc.complex, dc.ones "f16[2]", dc.ones "f16[2]")
  lu.assertErrorMsgContains("complex: dtypes differ", dc.complex, dc.ones "f32[2]", dc.ones "f64[2]")
  lu.assertErrorMsgContains("a last axis of 2 is needed", dc.view_as_complex, dc.ones "f32[3]")
  lu.assertErrorMsgContains("c64 or c128 is needed", dc.view_as_real, dc.ones "f32[3]")
  lu.assertErrorMsgContains("more than 7 axes of complex numbers", dc.zeros, "c64[1, 1, 1, 1, 1, 1, 1, 1]")
  lu.assertErrorMsgContains("8 axes; 7 is the most", dc.stack, { dc.zeros "c64[1, 1, 1, 1, 1, 1, 1]" })
  lu.assertErrorMsgContains("8 axes; 7 is the most", dc.complex, dc.zeros "f32[1, 1, 1, 1, 1, 1, 1, 1]", 0)
  lu.assertErrorMsgContains("complex numbers has more than 7 axes", dc.fn,
    "(x: c64[1, 1, 1, 1, 1, 1, 1, 1]) -> f32[]", print)
end

-- What torch.optim makes of the same steps.
function TestComplex:test_optimisers()
  local optim = require "deepc.optim"
  local function steps(make, options)
    local p = dc.param("c64[2]", c({ 1, 3 }, { 2, -1 }))
    local opt = make({ p }, options)
    local step = dc.fn("step()", function()
      local l = (p * c({ 1, 0 }, { 2, 0 })):abs():square():sum() + p:real():sum()
      opt:step(l)
      return l
    end)
    for _ = 1, 3 do
      step()
    end
    return p
  end
  near(steps(optim.Adam, { lr = 0.1 }), c({ 0.700903, 2.700382 }, { 1.700578, -0.701586 }))
  near(steps(optim.SGD, { lr = 0.1, momentum = 0.9 }), c({ -0.407, 0.186 }, { -2.097, 0.928 }))
  near(steps(optim.AdamW, { lr = 0.1 }), c({ 0.698217, 2.691704 }, { 1.694898, -0.698911 }))
  local p = steps(optim.Adam, { lr = 0.1, accumulate = 3, clip_norm = 1, clip_adaptive = 1 })
  near(p, c({ 0.9, 2.9 }, { 1.9, -0.9 }), 1e-3)
  local ema = optim.EMA({ p }, 0.5)
  ema:update()
  p:set(p + dc.complex(2, 4))
  ema:update()
  ema:swap_in()
  near(p, c({ 1.9, 4.9 }, { 2.9, 1.1 }), 1e-3)
  ema:swap_out()
  near(p, c({ 2.9, 6.9 }, { 3.9, 3.1 }), 1e-3)
end

function TestComplex:test_vdot_takes_conjugates()
  local a, b = dc.complex(dc.tensor { 1, 2 }, dc.tensor { 3, 4 }), dc.complex(dc.tensor { 5, 6 }, dc.tensor { 7, 8 })
  lu.assertEquals({ a:vdot(b):item() }, { 1 * 5 + 3 * 7 + 2 * 6 + 4 * 8, 1 * 7 - 3 * 5 + 2 * 8 - 4 * 6 })
  lu.assertEquals({ a:dot(b):item() }, { 1 * 5 - 3 * 7 + 2 * 6 - 4 * 8, 1 * 7 + 3 * 5 + 2 * 8 + 4 * 6 })
end

function TestComplex:test_pools_and_order_are_of_real_numbers()
  local x = dc.complex(dc.ones "f32[1, 2, 4]", dc.ones "f32[1, 2, 4]")
  for _, name in ipairs { "max_pool1d", "avg_pool1d" } do
    lu.assertErrorMsgContains(name .. ": c64[1, 2, 4]: a real number is needed", dc[name], x, 2)
  end
  for _, name in ipairs { "sort", "argsort" } do
    lu.assertErrorMsgContains(name .. ": c64[1, 2, 4]: a real number is needed", x[name], x)
  end
  lu.assertErrorMsgContains("top_k: c64[1, 2, 4]: a real number is needed", x.top_k, x, 1)
end
