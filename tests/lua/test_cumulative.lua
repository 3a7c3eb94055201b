-- Running reductions and dc.associative_scan: what a loop over the axis gives, and its gradients.
local lu = require "luaunit"
local dc = require "deepc"

local inf, nan = math.huge, 0 / 0

local function log_add(a, b)
  local top = math.max(a, b)
  return (a == b and a or top + math.log(1 + math.exp(math.min(a, b) - top))) + (a == b and a > -inf and a < inf and
    math.log(2) or 0)
end

local step = {
  cumsum = function(a, b) return a + b end, cumprod = function(a, b) return a * b end,
  cummax = function(a, b) return (a ~= a or a > b) and a or b end,
  cummin = function(a, b) return (a ~= a or a < b) and a or b end,
  logcumsumexp = log_add,
}

local function along(list, f, reverse)
  local out, last = {}, nil
  for k = 1, #list do
    local at = reverse and #list + 1 - k or k
    last = last == nil and list[at] or f(last, list[at])
    out[at] = last
  end
  return out
end

local function near(got, want, margin, what)
  if type(want) == "table" then
    lu.assertEquals(#got, #want, what)
    for i = 1, #want do
      near(got[i], want[i], margin, what)
    end
    return
  end
  lu.assertTrue(got == want or (got ~= got and want ~= want) or math.abs(got - want) <= margin * (1 + math.abs(want)),
    ("%s: %s, not %s"):format(what, got, want))
end

-- f(x) in a typed function.
local function typed(f, input, out)
  local function type_of(v) return ("%s[%s]"):format(v.dtype, table.concat(v.shape, ", ")) end
  local function run(x) return f(x) end
  return dc.fn(("f(x: %s) -> %s"):format(type_of(input), type_of(out or input)), run)(input)
end

TestCumulative = {}

function TestCumulative:test_sizes_axes_and_directions()
  for name, f in pairs(step) do
    for _, n in ipairs { 1, 2, 7, 8, 9, 16, 17, 33, 150 } do
      for _, reverse in ipairs { false, true } do
        local low = name == "cumprod" and 0.9 or -1
        local x = dc.rand(("f32[2, %d, 3]"):format(n), { seed = n, low = low, high = name == "cumprod" and 1.1 or 1 })
        local want = {}
        for r, rows in ipairs(x:permute(1, 3, 2):totable()) do
          want[r] = {}
          for c, row in ipairs(rows) do
            want[r][c] = along(row, f, reverse)
          end
        end
        for axis = 1, 3 do
          local order = axis == 2 and { 1, 3, 2 } or axis == 1 and { 2, 3, 1 } or { 1, 2, 3 }
          local back = axis == 2 and { 1, 2, 3 } or axis == 1 and { 2, 1, 3 } or { 1, 3, 2 }
          local turned = x:permute(table.unpack(back)) -- the axis of n elements is number `axis`
          local function run(v) return v[name](v, { axis = axis, reverse = reverse }) end
          local what = ("%s of %d along axis %d%s"):format(name, n, axis, reverse and ", reverse" or "")
          near(run(turned):permute(table.unpack(order)):totable(), want, 3e-5, what)
          if (n == 7 or n == 17 or n == 150) and (n + axis) % 3 == 0 then
            near(typed(run, turned + 0, turned):permute(table.unpack(order)):totable(), want, 3e-5, what .. ", typed")
          end
        end
      end
    end
  end
end

function TestCumulative:test_long()
  local n = 70000
  local ones = dc.ones(("i32[%d]"):format(n))
  local sums = ones:cumsum(1)
  lu.assertEquals({ sums[1]:item(), sums[4097]:item(), sums[n]:item() }, { 1, 4097, n })
  lu.assertTrue((sums:eq(dc.iota(("i64[%d]"):format(n)) + 1)):all():item())
  lu.assertTrue((sums:eq(typed(function(x) return x:cumsum(1) end, ones, sums))):all():item())
  -- as exact as pairs are
  local floats = dc.full(("f32[%d]"):format(n), 0.1):cumsum(1)
  lu.assertAlmostEquals(floats[n]:item(), 0.1 * n, 0.01)
end

function TestCumulative:test_infinities_and_nan()
  lu.assertEquals(dc.tensor({ 1, inf, 1 }):cumsum(1):totable(), { 1, inf, inf })
  lu.assertEquals(dc.tensor({ -inf, 2, inf, 1 }):cummax(1):totable(), { -inf, 2, inf, inf })
  local after = dc.tensor({ 1, nan, 3 })
  for _, name in ipairs { "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp" } do
    local list = after[name](after, 1):totable()
    lu.assertEquals(list[1], 1)
    lu.assertNaN(list[2], name)
    lu.assertNaN(list[3], name)
  end
  local long = {}
  for i = 1, 60 do
    long[i] = i == 40 and nan or i
  end
  local list = dc.tensor(long):cummax(1):totable()
  lu.assertEquals(list[39], 39)
  lu.assertNaN(list[40])
  lu.assertNaN(list[60])
  near(dc.tensor({ -inf, -inf, 0, 1000, 1000, -inf, inf }):logcumsumexp(1):totable(),
    { -inf, -inf, 0, 1000, 1000 + math.log(2), 1000 + math.log(2), inf }, 1e-6, "logcumsumexp")
end

function TestCumulative:test_dtypes()
  lu.assertEquals(dc.tensor({ 200, 100 }, "u8"):cumsum(1):totable(), { 200, 300 })
  lu.assertEquals(dc.tensor({ 200, 100 }, "u8"):cumsum(1).dtype, "u64")
  lu.assertEquals(dc.tensor({ true, false, true }, "bool"):cumsum(1):totable(), { 1, 1, 2 })
  lu.assertEquals(dc.tensor({ true, false, true }, "bool"):cumsum(1).dtype, "i32")
  lu.assertEquals(dc.tensor({ 20, 30 }, "i8"):cumprod(1):totable(), { 20, 600 })
  lu.assertEquals(dc.tensor({ 2 ^ 40 | 0, 3 }, "i64"):cumprod(1):totable(), { 2 ^ 40 | 0, 3 * 2 ^ 40 | 0 })
  for _, dtype in ipairs { "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64" } do
    local x = dc.tensor({ 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5 }, dtype)
    lu.assertEquals(x:cummax(1).dtype, dtype)
    lu.assertEquals(x:cummax(1):totable(), { 3, 3, 4, 4, 5, 9, 9, 9, 9, 9, 9 })
    lu.assertEquals(typed(function(v) return v:cummin { reverse = true } end, x):totable(),
      { 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 5 })
  end
  lu.assertEquals(dc.tensor({ -3, -1, -4 }, "i8"):cummax(1):totable(), { -3, -1, -1 })
  lu.assertEquals(dc.tensor({ false, true, false }, "bool"):cummax(1):totable(), { false, true, true })
  for _, dtype in ipairs { "f16", "bf16" } do -- computed in f32
    local ones = dc.ones(dtype .. "[600]")
    lu.assertEquals(ones:cumsum(1).dtype, dtype)
    near(typed(function(v) return v:cumsum(1) end, ones):cast("f32"):totable()[600], 600, 4e-3, dtype)
    near((ones / 512):cumsum(1):cast("f32"):totable()[600], 600 / 512, 4e-3, dtype)
  end
end

-- As sums: 64 bits hold what the dtype itself does not, short and long, lazily and compiled, along a bound as well.
function TestCumulative:test_integers_do_not_wrap()
  for _, dtype in ipairs { "i8", "i16", "i32", "u8", "u16", "u32" } do
    local bits, signed = tonumber(dtype:match "%d+"), dtype:match "^i"
    local most = (1 << bits - (signed and 1 or 0)) - 1
    for _, n in ipairs { 3, 3000 } do
      local x = dc.full(("%s[%d]"):format(dtype, n), most)
      for _, y in ipairs { x:cumsum(1), typed(function(v) return v:cumsum(1) end, x, x:cumsum(1)) } do
        lu.assertEquals(y.dtype, signed and "i64" or "u64")
        lu.assertEquals(y[n]:item(), n * most, dtype)
      end
      local backwards = x:cumsum { axis = 1, reverse = true }
      lu.assertEquals(backwards[1]:item(), n * most, dtype)
    end
    local few = dc.tensor({ most, most, 1 }, dtype)
    lu.assertEquals(few:cumprod(1).dtype, signed and "i64" or "u64")
    -- As bits: that of u32 is no integer of Lua.
    lu.assertEquals(few:cumprod(1)[3]:cast "i64":item(), most * most, dtype)
    local bounded = dc.fn(("f(x: %s[n <= 9]) -> %s[n]"):format(dtype, signed and "i64" or "u64"), function(x)
      return x:cumsum(1)
    end)
    lu.assertEquals(bounded(few):totable(), { most, 2 * most, 2 * most + 1 })
  end
end

function TestCumulative:test_dtype_that_is_asked_for()
  local x = dc.tensor({ 200, 100 }, "u8")
  for _, dtype in ipairs { "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64" } do
    local function f(v) return v:cumsum { axis = 1, dtype = dtype } end
    lu.assertEquals(f(x).dtype, dtype)
    lu.assertEquals(f(x):totable(), dc.tensor({ 200, 300 }, "i32"):cast(dtype):totable(), dtype)
    lu.assertEquals(typed(f, x, f(x)):totable(), f(x):totable(), dtype)
  end
  lu.assertEquals(dc.tensor({ 20, 30 }, "i8"):cumprod { axis = 1, dtype = "i8" }:totable(), { 20, 600 - 512 })
  lu.assertEquals(dc.tensor { 0.5, 0.75 }:cumsum { axis = 1, dtype = "f64" }:totable(), { 0.5, 1.25 })
end

function TestCumulative:test_shapes_and_names()
  lu.assertEquals(tostring(dc.zeros "f32[n=2, t=3]":cumsum "t"):match "[^\n]*$", "f32[n=2, t=3]")
  lu.assertEquals(tostring(dc.zeros "u8[n=2, t=20]":cumprod { axis = "t", reverse = true }):match "[^\n]*$",
    "u64[n=2, t=20]")
  for _, name in ipairs { "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp" } do
    local function run(x) return x[name](x, 1) end
    lu.assertEquals(run(dc.zeros "f32[0]").shape, { 0 })
    lu.assertEquals(run(dc.zeros "f32[3, 0]").shape, { 3, 0 })
    lu.assertEquals(typed(run, dc.zeros "f32[0, 4]").shape, { 0, 4 })
    local deep = dc.ones "f32[1, 2, 1, 2, 20, 1, 1, 2]" -- as many axes as there can be
    lu.assertEquals(deep[name](deep, 5).shape, deep.shape)
    lu.assertEquals(run(dc.tensor { 5 }):totable(), { 5 })
  end
end

function TestCumulative:test_mistakes()
  local function raises(text, f, ...)
    local ok, err = pcall(f, ...)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(err), text)
  end
  local a = dc.ones "f32[2, 3]"
  raises("cumsum: one axis is needed, as in x:cumsum(-1)", dc.cumsum, a)
  raises("cummax: axis 3 of f32[2, 3]", dc.cummax, a, 3)
  raises("cumprod: unknown option 'keep'; known are axis, reverse, dtype", dc.cumprod, a, { axis = 1, keep = true })
  raises("cummin: reverse must be true or false, not the number 1", dc.cummin, a, { axis = 1, reverse = 1 })
  raises("cumsum: dtype is one of numbers", dc.cumsum, a, { axis = 1, dtype = "bool" })
  raises("cummax: unknown option 'dtype'; known are axis, reverse", dc.cummax, a, { axis = 1, dtype = "i64" })
  raises("logcumsumexp: i32[2]: a float is needed", dc.logcumsumexp, dc.zeros "i32[2]", 1)
end

-- ---- gradients ----

-- The slopes of sum(f(x) * w), by differences.
local function differences(f, list, weights)
  local out = {}
  local h = 1e-5
  local function at(values)
    return (f(dc.tensor(values, "f64")) * dc.tensor(weights, "f64")):sum():item()
  end
  for i = 1, #list do
    local up, down = table.move(list, 1, #list, 1, {}), table.move(list, 1, #list, 1, {})
    up[i], down[i] = up[i] + h, down[i] - h
    out[i] = (at(up) - at(down)) / (2 * h)
  end
  return out
end

local function slopes(f, list, weights, lazily)
  local x, w = dc.tensor(list, "f64"):watch(), dc.tensor(weights, "f64")
  local function loss(v) return dc.grad((f(v) * w):sum(), v) end
  local lazy = loss(x):totable()
  if not lazily then
    near(typed(loss, x):totable(), lazy, 1e-9, "in a typed function")
  end
  return lazy
end

function TestCumulative:test_gradients()
  math.randomseed(5)
  for _, n in ipairs { 1, 5, 8, 9, 20 } do
    for _, reverse in ipairs { false, true } do
      local list, weights = {}, {}
      for i = 1, n do
        list[i], weights[i] = math.random() * 2 - 1, math.random() * 2 - 1
      end
      list[3] = list[3] and 0 -- a product of which one factor is 0
      for name in pairs(step) do
        local function f(x) return x[name](x, { axis = 1, reverse = reverse }) end
        near(slopes(f, list, weights, n ~= 20 or reverse), differences(f, list, weights), 1e-6,
          ("%s of %d"):format(name, n))
      end
    end
  end
end

-- Equal ones share, as in the maximum of each beginning.
function TestCumulative:test_ties()
  for _, n in ipairs { 7, 60 } do
    local x = (dc.rand(("f32[%d]"):format(n), { seed = n }) * 4):floor():watch()
    local w = dc.rand(("f32[%d]"):format(n), { seed = n + 1 })
    for _, name in ipairs { "max", "min" } do
      local sum = 0
      for i = 1, n do
        sum = sum + x[{ { 1, i } }][name](x[{ { 1, i } }]) * w[i]
      end
      local function loss(v) return dc.grad((v["cum" .. name](v, 1) * w):sum(), v) end
      local want = dc.grad(sum, x):totable()
      near(loss(x):totable(), want, 1e-5, name)
      near(typed(loss, x):totable(), want, 1e-5, name)
    end
  end
end

function TestCumulative:test_gradient_of_logcumsumexp_beside_nothing()
  local x = dc.tensor({ -inf, -inf, 0, 1000, 1000 }):watch()
  near(dc.grad(x:logcumsumexp(1)[{ { 3, 5 } }]:sum(), x):totable(), { 0, 0, 1, 1.5, 0.5 }, 1e-6, "slopes")
  near(dc.grad(x:logcumsumexp(1):sum(), x):totable(), { 1, 0, 1, 1.5, 0.5 }, 1e-6, "slopes")
end

function TestCumulative:test_second_order()
  math.randomseed(6)
  local list = {}
  for i = 1, 19 do
    list[i] = i % 3 == 0 and 0.5 or math.random() -- with ties
  end
  for _, name in ipairs { "cumprod", "logcumsumexp" } do
    local function first(x)
      return dc.grad(x[name](x, 1):square():sum(), x)
    end
    local function watched(x) return first(x:watch()) end
    local ones = {}
    for i = 1, #list do
      ones[i] = 1 + i / 10
    end
    near(slopes(first, list, ones), differences(watched, list, ones), 1e-5, name)
  end
  local function twice(x) -- running maxima of running maxima
    return x:cummax(1):cummin { axis = 1, reverse = true }
  end
  local distinct = {}
  for i = 1, 40 do
    distinct[i] = math.random()
  end
  near(slopes(twice, distinct, distinct), differences(twice, distinct, distinct), 1e-6, "twice")
end

TestAssociative = {}

local function recurrence(k, x, options)
  return dc.associative_scan(function(a, b)
    return { k = a.k * b.k, x = a.x * b.k + b.x }
  end, { k = k, x = x }, options).x
end

local function by_scan(k, x)
  local _, h = dc.scan(function(c, e)
    c = c * e.k + e.x
    return c, c
  end, dc.zeros(("f32[%d]"):format(x.shape[2])), { k = k, x = x })
  return h
end

function TestAssociative:test_recurrence_and_its_gradient()
  for _, n in ipairs { 1, 2, 3, 16, 21 } do
    local k, x = dc.rand(("f32[%d, 3]"):format(n), { seed = 1 }), dc.randn(("f32[%d, 3]"):format(n), { seed = 2 })
    local w = dc.randn(("f32[%d, 3]"):format(n), { seed = 3 })
    near(recurrence(k, x):totable(), by_scan(k, x):totable(), 1e-5, "values")
    local function slope(f)
      local text = ("f32[%d, 3]"):format(n)
      local signature = ("f(k: %s, x: %s) -> %s, %s, %s"):format(text, text, text, text, text)
      local run = dc.fn(signature, function(k, x) -- luacheck: ignore 431
        local h = f(k, x)
        local g = dc.grad((h * w):sum(), { k, x }, { unused = "zero" })
        return h, g[1], g[2]
      end)
      local h, gk, gx = run(k, x)
      return { h:totable(), gk:totable(), gx:totable() }
    end
    near(slope(recurrence), slope(by_scan), 1e-4, "gradients")
  end
end

-- Products of matrices do not commute.
function TestAssociative:test_order_and_axes()
  local n = 11
  local m = dc.randn(("f32[2, t=%d, 2, 2]"):format(n), { seed = 4 })
  local function product(a, b) return a:matmul(b) end
  for _, reverse in ipairs { false, true } do
    local want, last = {}, nil
    for k = 1, n do
      local at = reverse and n + 1 - k or k
      local one = m[{ {}, at }]
      last = last and last:matmul(one) or one
      want[at] = last
    end
    want = dc.stack(want, 2):totable()
    for _, axis in ipairs { 2, -3, "t" } do
      local got = dc.associative_scan(product, m, { axis = axis, reverse = reverse })
      lu.assertEquals(tostring(got):match "[^\n]*$", "f32[2, t=11, 2, 2]")
      near(got:totable(), want, 1e-4, "products")
    end
  end
end

function TestAssociative:test_records_dtypes_and_vmap()
  local x = dc.tensor({ 3, 1, 4, 1, 5, 9, 2, 6 }, "i32")
  local r = dc.associative_scan(function(a, b)
    return { a[1]:maximum(b[1]), { all = a[2].all & b[2].all } }
  end, { x, { all = x:lt(5) } })
  lu.assertEquals(r[1]:totable(), { 3, 3, 4, 4, 5, 9, 9, 9 })
  lu.assertEquals(r[2].all:totable(), { true, true, true, true, false, false, false, false })
  local rows = dc.rand("f32[4, 9]", { seed = 1 })
  local f = dc.vmap(function(v) return dc.associative_scan(function(a, b) return a + b end, v) end)
  near(f(rows):totable(), rows:cumsum(2):totable(), 1e-6, "vmap")
  near(typed(f, rows):totable(), rows:cumsum(2):totable(), 1e-6, "vmap")
  lu.assertEquals(dc.associative_scan(function(a, b) return a + b end, dc.zeros "f32[0, 2]").shape, { 0, 2 })
end

-- Outside of functions, too, and of what depends on x through the scan alone; one element is a value of its own.
function TestAssociative:test_gradients_outside_of_functions()
  local function sums(reverse)
    return function(x)
      local y = dc.associative_scan(function(a, b) return a + b end, x, { reverse = reverse })
      return dc.grad((y * x):sum(), x), dc.grad((y * y):sum(), x)
    end
  end
  for n = 1, 9 do
    for _, reverse in ipairs { false, true } do
      local x = dc.rand(("f32[%d]"):format(n), { seed = n })
      local want = { typed(function(v) return (sums(reverse)(v)) end, x), typed(function(v)
        return select(2, sums(reverse)(v))
      end, x) }
      for k, got in ipairs { sums(reverse)(x:watch()) } do
        near(got:totable(), want[k]:totable(), 1e-5, n)
      end
    end
  end
  local p = dc.param("f32[1]", { 3 })
  local one = dc.associative_scan(function(a, b) return a + b end, p)
  p:set { 4 }
  lu.assertEquals(one:totable(), { 3 })
end
