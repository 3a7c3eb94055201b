-- Functions of one tensor, reductions and what takes integers, against plain Lua; gradients against
-- what they should be, also where functions jump.
local lu = require "luaunit"
local dc = require "deepc"
local raises = require("tests.lua.check").raises

local nan, inf = 0 / 0, 1 / 0

local function same(got, want, what)
  if want ~= want then
    lu.assertTrue(got ~= got, what)
  elseif type(want) == "number" and math.abs(want) < inf then
    lu.assertTrue(math.abs(got - want) <= 1e-6 * math.max(1, math.abs(want)), ("%s: %s, not %s"):format(what, got,
      want))
    if want == 0 then lu.assertEquals(1 / got, 1 / want, what) end
  else
    lu.assertEquals(got, want, what)
  end
end

-- An f32 as Lua sees it.
local function f32(v) return dc.tensor(v):item() end

-- The gradient of the sum of f(x), as numbers, of the compiled function.
local function slopes(f, values)
  local type_text = ("f32[%d]"):format(#values)
  return dc.fn(("g(x: %s) -> %s"):format(type_text, type_text), function(x)
    local y = f(x)
    return dc.grad(y:sum(), x)
  end)(values):totable()
end

TestUnary = {}

local samples = { -2.5, -2, -1.5, -1, -0.5, -0.25, -0.0, 0.0, 0.25, 0.5, 1, 1.5, 2, 2.5, 1e9, -1e9, 1e30, inf,
  -inf, nan }

local function sign(v) return v > 0 and 1 or v < 0 and -1 or v end
local function trunc(v) return v < 0 and (math.abs(v) < inf and -(math.abs(v) // 1) or v) or v // 1 end
local function ceil(v) return -(-v // 1) end

local functions = {
  sign = { sign, function() return 0 end },
  ceil = { function(v) return math.abs(v) == inf and v or ceil(v) end, function() return 0 end },
  trunc = { function(v) return math.abs(v) == inf and v or trunc(v) end, function() return 0 end },
  square = { function(v) return math.abs(v) > 1e19 and v == v and inf or f32(v * v) end, function(v) return 2 * v end },
  reciprocal = { function(v) return 1 / v end, function(v) return -1 / (v * v) end },
  rsqrt = { function(v) return v < 0 and nan or 1 / math.sqrt(v) end,
    function(v) return v > 0 and -0.5 * v ^ -1.5 end },
  isnan = { function(v) return v ~= v end },
  isinf = { function(v) return v == inf or v == -inf end },
  isfinite = { function(v) return v == v and v ~= inf and v ~= -inf end },
  relu = { function(v) return v ~= v and v or v > 0 and v or 0 end,
    function(v) return v > 0 and 1 or 0 end },
}

function TestUnary:test_values()
  for name, f in pairs(functions) do
    local got = dc[name](dc.tensor(samples)):totable()
    for i, v in ipairs(samples) do
      same(got[i], f[1](f32(v)), ("%s(%s)"):format(name, v))
    end
  end
end

function TestUnary:test_inside_a_typed_function()
  for name in pairs(functions) do
    local want = dc.tensor(samples)[name](dc.tensor(samples))
    local f = dc.fn(("f(x: f32[%d]) -> %s[%d]"):format(#samples, want.dtype, #samples),
      function(x) return x[name](x) end)
    local got, expected = f(samples):totable(), want:totable()
    for i = 1, #samples do same(got[i], expected[i], name .. " of " .. samples[i]) end
  end
end

function TestUnary:test_gradients()
  local at = { -2.5, -1, -0.25, 0, 0.25, 1, 2.5 }
  for name, f in pairs(functions) do
    if f[2] then
      local got = slopes(dc[name], at)
      for i, v in ipairs(at) do
        local want = f[2](v)
        if want and math.abs(want) < inf then same(math.abs(got[i]) == 0 and 0 or got[i], want,
          name .. "'(" .. v .. ")") end
      end
    end
  end
end

-- Half a unit of the last place of 1.
local units = { f16 = 2 ^ -11, bf16 = 2 ^ -8, f32 = 2 ^ -24, f64 = 2 ^ -53 }

-- Within a few units of the last place of f32, or another float.
local function near(got, want, what, dtype)
  if want ~= want then return lu.assertTrue(got ~= got, what) end
  if math.abs(want) == inf then return lu.assertEquals(got, want, what) end
  local least = dtype == "f64" and 0 or 1e-38
  local margin = 6 * units[dtype or "f32"] * math.abs(want) + least
  lu.assertTrue(math.abs(got - want) <= margin, ("%s: %.9g, not %.9g"):format(what, got, want))
end

-- log(1 + x) and exp(x) - 1 in Lua, accurate near 0 too.
local function log1p(v)
  local w = 1 + v
  return w == 1 and v or v == inf and v or math.log(w) * v / (w - 1)
end
local function expm1(v)
  if math.abs(v) < 1e-3 then return v + v * v / 2 + v ^ 3 / 6 + v ^ 4 / 24 end
  return math.exp(v) - 1
end
-- The series whose terms are all of one sign.
local function erf(v)
  if math.abs(v) > 6 then return v > 0 and 1 or -1 end
  local sum, term = v, v
  for n = 1, 200 do
    term = 2 * term * v * v / (2 * n + 1)
    sum = sum + term
  end
  return 2 / math.sqrt(math.pi) * math.exp(-v * v) * sum
end
local function sigmoid(v) return 1 / (1 + math.exp(-v)) end
local function even(v)
  local low = v // 1
  local rest = v - low
  if rest == 0.5 then return low % 2 == 0 and low or low + 1 end
  return rest < 0.5 and low or low + 1
end

local curves = {
  sin = { math.sin, math.cos },
  cos = { math.cos, function(v) return -math.sin(v) end },
  tan = { math.tan, function(v) return 1 + math.tan(v) ^ 2 end },
  round = { even, function() return 0 end },
  log1p = { log1p, function(v) return 1 / (1 + v) end },
  expm1 = { expm1, math.exp },
  erf = { erf, function(v) return 2 / math.sqrt(math.pi) * math.exp(-v * v) end, 16 }, -- the series rounds too
  silu = { function(v) return v * sigmoid(v) end, function(v) return sigmoid(v) * (1 + v * (1 - sigmoid(v))) end },
  softplus = { function(v) return log1p(math.exp(v)) end, sigmoid },
}

function TestUnary:test_curves()
  local at = { -0.9, -0.75, -0.5, -0.25, -1e-3, -1e-7, 0, 1e-7, 1e-3, 0.125, 0.5, 0.75, 1, 1.5, 2.5, 3, 3.5 }
  local function close(got, want, units_off, what)
    lu.assertAlmostEquals(got, want, units_off * math.max(1, math.abs(want)), what)
  end
  for dtype, unit in pairs(units) do
    local input = dc.tensor(at, dtype)
    local exact = input:totable()
    for name, f in pairs(curves) do
      local sig = ("f(x: %s[17]) -> %s[17]"):format(dtype, dtype)
      local got = input[name](input):totable()
      local slope = dc.fn(sig, function(x) return dc.grad(x[name](x):sum(), x) end)(input):totable()
      local inside = dc.fn(sig, function(x) return x[name](x) end)(input):totable()
      for i, v in ipairs(exact) do
        local what = ("%s of %s %s"):format(name, dtype, v)
        close(got[i], f[1](v), (f[3] or 8) * unit, what)
        close(inside[i], f[1](v), (f[3] or 8) * unit, what)
        close(slope[i], f[2](v), 32 * unit, what)
      end
    end
  end
end

function TestUnary:test_small_and_large_arguments()
  for _, name in ipairs { "log1p", "expm1", "sin", "erf" } do
    for _, v in ipairs { 1e-30, -1e-20, 1e-10 } do
      local k = name == "erf" and 2 / math.sqrt(math.pi) or 1
      near(dc[name](dc.tensor(v)):item(), k * f32(v), name)
      near(dc.fn("f(x: f32[]) -> f32[]", function(x) return x[name](x) end)(v):item(), k * f32(v), name)
    end
    lu.assertEquals(1 / dc[name](dc.tensor(-0.0)):item(), -inf)
  end
  local large = { 1e3, -12345.678, 1e6, 3e8, -1e12, 2.5e25, 3.4e38 }
  local function check(what, f, of)
    local got = dc.fn("f(x: f32[7]) -> f32[7]", f)(large):totable()
    for i, v in ipairs(large) do near(got[i], of(f32(v)), what .. " of " .. v) end
  end
  check("sin", function(x) return x:sin() end, math.sin)
  check("cos", function(x) return x:cos() end, math.cos)
  for dtype in pairs(units) do
    for _, name in ipairs { "sin", "cos", "tan" } do
      lu.assertIsNaN(dc[name](dc.tensor(-inf, dtype)):item())
    end
  end
  lu.assertEquals(dc.tensor({ inf, -inf }):erf():totable(), { 1, -1 })
  lu.assertEquals(dc.tensor({ inf, -inf, 100, -200 }):expm1():totable(), { inf, -1, inf, -1 })
  lu.assertEquals(dc.tensor({ inf, -1 }):log1p():totable(), { inf, -inf })
  lu.assertIsNaN(dc.tensor(-2):log1p():item())
  lu.assertEquals(dc.tensor({ 0.5, 1.5, 2.5, -0.5, -1.5, 1e30, inf }):round():totable(), { 0, 2, 2, -0.0, -2,
    f32(1e30), inf })
  lu.assertEquals(dc.tensor({ 1000, -1000 }):softplus():totable(), { 1000, 0 })
  near(dc.tensor(-20):softplus():item(), math.exp(-20), "softplus")
  lu.assertEquals(slopes(dc.softplus, { 1000, -1000, 0 }), { 1, 0, 0.5 })
end

function TestUnary:test_sine_and_cosine_of_large_f64()
  local large = { 1e3, -12345.678, 1e22, -1e100, 2.5e300, 0x1.fffffffffffffp1023 }
  local function compiled(name, values)
    local sig = ("f(x: f64[%d]) -> f64[%d]"):format(#values, #values)
    return dc.fn(sig, function(x) return x[name](x) end)(dc.tensor(values, "f64")):totable()
  end
  for _, name in ipairs { "sin", "cos" } do
    for i, got in ipairs(compiled(name, large)) do
      near(got, math[name](large[i]), name .. " of " .. large[i], "f64")
    end
  end
  -- The double closest to a multiple of pi / 2. Cosines of the C library may be off by more here.
  near(compiled("cos", { 6381956970095103 * 2.0 ^ 797 })[1], -4.6871659242546277e-19, "cos", "f64")
end

function TestUnary:test_gelu()
  local at = { -3, -1, -0.1, 0, 0.1, 1, 3 }
  local exact, near_it = dc.tensor(at):gelu():totable(), dc.tensor(at):gelu({ approximate = "tanh" }):totable()
  for i, v in ipairs(at) do
    lu.assertAlmostEquals(exact[i], v / 2 * (1 + erf(v / math.sqrt(2))), 5e-7)
    local t = math.sqrt(2 / math.pi) * (v + 0.044715 * v ^ 3)
    lu.assertAlmostEquals(near_it[i], v / 2 * (1 + (1 - 2 / (1 + math.exp(2 * t)))), 5e-7)
  end
  local slope = slopes(dc.gelu, at)
  for i, v in ipairs(at) do
    local want = 0.5 * (1 + erf(v / math.sqrt(2))) + v * math.exp(-v * v / 2) / math.sqrt(2 * math.pi)
    lu.assertAlmostEquals(slope[i], want, 1e-6)
  end
  raises("gelu: approximate is \"tanh\" or \"none\", not the string 'erf'", "DC0101", dc.gelu, dc.zeros "f32[1]",
    { approximate = "erf" })
  raises("gelu: i32[1]: a float is needed", "DC0202", dc.gelu, dc.zeros "i32[1]")
  raises("sin: i32[1]: a float is needed", "DC0202", dc.sin, dc.zeros "i32[1]")
end

-- The gradients of tanh and sigmoid are made of their results: (1 - y) (1 + y) and y (1 - y), of every order.
function TestUnary:test_gradients_by_results()
  local at = { -40, -9, -1, -0.2, 0, 0.2, 1, 9, 40 }
  local x = dc.tensor(at)
  for _, row in ipairs {
    { dc.tanh, function(y) return (1 - y) * (1 + y) end, function(y, s) return -2 * y * s end },
    { dc.sigmoid, function(y) return y * (1 - y) end, function(y, s) return (1 - 2 * y) * s end },
  } do
    local y = row[1](x)
    local slope = dc.grad(y:sum(), x)
    local bend = dc.grad(slope:sum(), x)
    for i, v in ipairs(y:totable()) do
      local first = row[2](v)
      lu.assertAlmostEquals(slope[i]:item(), first, 1e-7 * math.abs(first))
      lu.assertAlmostEquals(bend[i]:item(), row[3](v, first), 3e-7)
    end
  end
end

-- So a layer keeps its result for the gradient, and nothing that it was made of.
function TestUnary:test_what_gradients_keep()
  for _, name in ipairs { "tanh", "sigmoid", "relu" } do
    local w = dc.param("f32[8, 64]", dc.randn("f32[8, 64]", { seed = 1 }))
    local f = dc.fn("f(x: f32[100, 8]) -> f32[8, 64]", function(x)
      return dc.grad(dc[name](x:matmul(w)):square():sum(), w)
    end)
    f(dc.randn("f32[100, 8]", { seed = 2 }))
    lu.assertEquals(f:info()[1].arena_bytes, 100 * 64 * 4)
  end
end

function TestUnary:test_integers()
  lu.assertEquals(dc.tensor({ -3, 0, 7 }, "i32"):sign():totable(), { -1, 0, 1 })
  lu.assertEquals(dc.tensor({ 0, 7 }, "u8"):sign():totable(), { 0, 1 })
  lu.assertEquals(dc.tensor({ 3, -4 }, "i32"):square():totable(), { 9, 16 })
  lu.assertEquals(dc.tensor({ 2, 4 }, "i32"):reciprocal():totable(), { 0.5, 0.25 })
  lu.assertEquals(dc.tensor({ 2, 4 }, "i32"):isfinite():totable(), { true, true })
  lu.assertEquals(dc.tensor({ 2, 4 }, "i32"):isnan():totable(), { false, false })
  raises("ceil: i32[1]: a float is needed", "DC0202", dc.ceil, dc.zeros "i32[1]")
end

function TestUnary:test_clamp()
  local x = dc.tensor { -2, 0.5, 3, nan }
  local got = x:clamp(-1, 1):totable()
  lu.assertEquals({ got[1], got[2], got[3] }, { -1, 0.5, 1 })
  lu.assertIsNaN(got[4])
  lu.assertEquals(x[{ { 1, 3 } }]:clamp(0):totable(), { 0, 0.5, 3 })
  lu.assertEquals(x[{ { 1, 3 } }]:clamp(nil, 0):totable(), { -2, 0, 0 })
  lu.assertEquals(dc.tensor({ 1, 5, 9 }, "i32"):clamp(2, 6):totable(), { 2, 5, 6 })
  lu.assertEquals(dc.clamp(dc.tensor { 1, 2 }, dc.tensor { 2, 0 }, 1.5):totable(), { 1.5, 1.5 })
  lu.assertEquals(slopes(function(v) return v:clamp(-1, 1) end, { -2, 0, 2, -1 }), { 0, 1, 0, 0.5 })
  raises("clamp: a bound is needed, as in x:clamp(0, 1)", "DC0101", x.clamp, x)
  raises("clamp: 0.5 does not fit i32", "DC0203", dc.clamp, dc.zeros "i32[1]", 0.5)
end

TestReductions = {}

local matrix = { { 3, -1, 2 }, { -4, 5, 0.5 } }

-- f of each row, of each column, of all.
local function over(f)
  local columns, all = {}, {}
  for k = 1, 3 do columns[k] = f { matrix[1][k], matrix[2][k] } end
  for _, row in ipairs(matrix) do for _, v in ipairs(row) do all[#all + 1] = v end end
  return { f(matrix[1]), f(matrix[2]) }, columns, f(all)
end

local function sum(list) local s = 0 for _, v in ipairs(list) do s = s + v end return s end
local function var(list)
  local mean, s = sum(list) / #list, 0
  for _, v in ipairs(list) do s = s + (v - mean) ^ 2 end
  return s / #list
end

local reductions = {
  sum = sum,
  mean = function(list) return sum(list) / #list end,
  prod = function(list) local p = 1 for _, v in ipairs(list) do p = p * v end return p end,
  max = function(list) return math.max(table.unpack(list)) end,
  min = function(list) return math.min(table.unpack(list)) end,
  var = var,
  std = function(list) return var(list) ^ 0.5 end,
  norm = function(list) local s = 0 for _, v in ipairs(list) do s = s + v * v end return s ^ 0.5 end,
  logsumexp = function(list) local s = 0 for _, v in ipairs(list) do s = s + math.exp(v) end return math.log(s) end,
}

function TestReductions:test_over_axes()
  local a = dc.tensor(matrix)
  for name, f in pairs(reductions) do
    local rows, columns, all = over(f)
    same(a[name](a):item(), all, name)
    for i, v in ipairs(a[name](a, 2):totable()) do same(v, rows[i], name) end
    for i, v in ipairs(dc[name](a, 1):totable()) do same(v, columns[i], name) end
    lu.assertEquals(a[name](a, { axis = 1, keep = true }).shape, { 1, 3 })
    lu.assertEquals(a[name](a, { 1, 2 }).shape, {})
  end
end

function TestReductions:test_gradients_by_differences()
  local flat = { 3, -1, 2, -4, 5, 0.5 }
  local h = 0.0078125
  for name, f in pairs(reductions) do
    local got = slopes(function(x) return x[name](x) end, flat)
    for i = 1, #flat do
      local up, down = { table.unpack(flat) }, { table.unpack(flat) }
      up[i], down[i] = flat[i] + h, flat[i] - h
      lu.assertAlmostEquals(got[i], (f(up) - f(down)) / (2 * h), 2e-3, name)
    end
  end
end

function TestReductions:test_corrected_variance()
  local x = dc.tensor { 1, 2, 3, 4 }
  same(x:var { correction = 1 }:item(), 5 / 3, "var")
  same(x:std { axis = 1, correction = 1 }:item(), (5 / 3) ^ 0.5, "std")
  same(dc.tensor({ 1, 2 }, "i32"):var():item(), 0.25, "var")
  lu.assertTrue(dc.tensor({ 1 }):var({ correction = 1 }):isnan():item())
  raises("var: unknown option 'corection'; known are axis, keep, correction", "DC0101", x.var, x, { corection = 1 })
end

function TestReductions:test_roots_of_zero_have_no_slope()
  lu.assertEquals(slopes(dc.norm, { 0, 0 }), { 0, 0 })
  lu.assertEquals(slopes(dc.std, { 2, 2 }), { 0, 0 })
end

function TestReductions:test_logsumexp_far_out()
  same(dc.tensor({ 1000, 1000 }):logsumexp():item(), 1000 + math.log(2), "large")
  same(dc.tensor({ -inf, -inf }):logsumexp():item(), -inf, "nothing")
  same(dc.tensor({ inf, 0 }):logsumexp():item(), inf, "infinite")
  same(slopes(dc.logsumexp, { 1000, 1000 })[1], 0.5, "gradient")
  lu.assertEquals(slopes(dc.logsumexp, { -inf, -inf }), { 0, 0 })
  raises("logsumexp: i32[2]: a float is needed", "DC0202", dc.logsumexp, dc.zeros "i32[2]")
end

function TestReductions:test_all_and_any()
  local m = dc.tensor({ { true, false }, { true, true } }, "bool")
  lu.assertEquals(m:all():item(), false)
  lu.assertEquals(m:any():item(), true)
  lu.assertEquals(m:all(2):totable(), { false, true })
  lu.assertEquals(m:any({ axis = 1, keep = true }):totable(), { { true, true } })
  lu.assertEquals(dc.zeros "bool[0]":all():item(), true)
  lu.assertEquals(dc.zeros "bool[0]":any():item(), false)
  local err = raises("all: f32[2]: bool is needed", "DC0202", dc.all, dc.zeros "f32[2]")
  lu.assertEquals(err.hint, "x:ne(0) tells what is not zero")
end

function TestReductions:test_positions()
  local a = dc.tensor { { 1, 9, 9 }, { 2, -4, -4 } }
  lu.assertEquals(a:argmax(2):totable(), { 1, 0 })
  lu.assertEquals(a:argmin(2):totable(), { 0, 1 })
  lu.assertEquals(a:argmin { axis = 1, keep = true }:totable(), { { 0, 1, 1 } })
  lu.assertEquals(dc.tensor({ 1, nan, 3, nan }):argmax(1):item(), 1)
  lu.assertEquals(dc.tensor({ 1, nan, -3 }):argmin(1):item(), 1)
  lu.assertEquals(dc.tensor({ -inf, -inf }):argmax(1):item(), 0)
  lu.assertEquals(a:argmin(2).dtype, "i32")
  raises("argmin: one axis is needed, as in x:argmin(-1)", "DC0101", dc.argmin, a)
  raises("argmin: axis 1 of f32[0] has no elements", "DC0101", dc.argmin, dc.zeros "f32[0]", 1)
end

function TestReductions:test_cumsum()
  local a = dc.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
  lu.assertEquals(a:cumsum(2):totable(), { { 1, 3, 6 }, { 4, 9, 15 } })
  lu.assertEquals(a:cumsum(1):totable(), { { 1, 2, 3 }, { 5, 7, 9 } })
  lu.assertEquals(dc.tensor({ 1, inf, 1 }):cumsum(1):totable(), { 1, inf, inf })
  lu.assertEquals(dc.tensor({ 200, 100 }, "u8"):cumsum(1):totable(), { 200, 300 })
  lu.assertEquals(tostring(dc.zeros "f32[n=2, t=3]":cumsum "t"):match "[^\n]*$", "f32[n=2, t=3]")
  lu.assertEquals(slopes(function(x) return x:cumsum(1) end, { 5, 5, 5 }), { 3, 2, 1 })
  lu.assertEquals(dc.zeros "f32[0]":cumsum(1).shape, { 0 })
end

TestTake = {}

function TestTake:setUp()
  self.a = dc.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
end

function TestTake:test_along_each_axis()
  local i = dc.tensor({ 1, 0, 1 }, "i32")
  lu.assertEquals(self.a:take(i):totable(), { { 4, 5, 6 }, { 1, 2, 3 }, { 4, 5, 6 } })
  lu.assertEquals(self.a:take(dc.tensor({ 2, 0 }, "u8"), 2):totable(), { { 3, 1 }, { 6, 4 } })
  lu.assertEquals(dc.take(self.a, { 2 }, -1):totable(), { { 3 }, { 6 } })
  lu.assertEquals(self.a:take(dc.tensor(1, "i32")):totable(), { 4, 5, 6 })
  lu.assertEquals(self.a:take({ { 0, 1 }, { 1, 1 } }, 1).shape, { 2, 2, 3 })
  lu.assertEquals(self.a:take(dc.zeros "i32[0]").shape, { 0, 3 })
end

function TestTake:test_names()
  local x = dc.zeros "f32[v=2, c=3]":take(dc.zeros "i32[batch=4, t=5]", "v")
  lu.assertStrContains(tostring(x), "f32[batch=4, t=5, c=3]")
end

function TestTake:test_gradient_adds_up()
  local g = dc.fn("g(x: f32[3], i: i32[4]) -> f32[3]", function(x, i)
    return dc.grad((x:take(i) * dc.tensor { 1, 2, 3, 4 }):sum(), x)
  end)
  lu.assertEquals(g({ 0, 0, 0 }, { 2, 0, 2, 2 }):totable(), { 2, 0, 8 })
end

function TestTake:test_outside_is_an_error()
  local a = dc.zeros "f32[10]"
  raises("take: index 12 outside 0..9 of axis 1 at position 4", "DC0701", a.take, a, dc.tensor({ 0, 9, 3, 12, 99 },
    "i32"))
  raises("take: index -1 outside 0..2 of axis 2 at position [2, 1]", "DC0701", function()
    return self.a:take({ { 0, 2 }, { -1, 0 } }, 2)
  end)
end

function TestTake:test_outside_in_a_typed_function()
  local f = dc.fn("f(x: f32[3], i: i32[2]) -> f32[2]", function(x, i)
    return x:take(i)
  end)
  lu.assertEquals(f({ 5, 6, 7 }, { 2, 0 }):totable(), { 7, 5 })
  local err = raises("take: index 3 outside 0..2 of axis 1 at position 2", "DC0701", f, { 5, 6, 7 }, { 2, 3 })
  lu.assertStrContains(err.at, "test_functions.lua:")
  lu.assertStrContains(err.message, "index  i32[2]   argument 'i' of f")
  lu.assertEquals(f({ 5, 6, 7 }, { 1, 1 }):totable(), { 6, 6 })
end

function TestTake:test_mistakes()
  local a = self.a
  raises("take: f32[1]: an integer is needed", "DC0202", a.take, a, dc.zeros "f32[1]")
  local err = raises("take: bool[2]: an integer is needed", "DC0202", a.take, a, dc.zeros "bool[2]")
  lu.assertEquals(err.hint, "dc.where(mask, x, 0) keeps the shape")
  raises("take: a tensor of positions from 0 is needed, not the number 1", "DC0101", a.take, a, 1)
  raises("take: axis 3 of f32[2, 3]: axes are 1 to 2, -1 is the last, or a name", "DC0103", a.take, a, { 1 }, 3)
end

function TestTake:test_put_at_integers()
  local i = dc.tensor({ 1, 0 }, "i32")
  lu.assertEquals(self.a:put(i, dc.tensor { { 7, 8, 9 }, { 0, 0, 0 } }):totable(), { { 0, 0, 0 }, { 7, 8, 9 } })
  lu.assertEquals(self.a:put(i, dc.tensor { 7, 8 }, 2):totable(), { { 8, 7, 3 }, { 8, 7, 6 } })
  lu.assertEquals(self.a:put(dc.tensor({ 2 }, "u8"), 9, 2):totable(), { { 1, 2, 9 }, { 4, 5, 9 } })
  lu.assertEquals(dc.zeros "i32[3]":put(dc.tensor({ 1, 1 }, "i32"), dc.tensor({ 5, 6 }, "i32")):totable(), { 0, 6, 0 })
  raises("put: index 2 outside 0..1 of axis 1 at position 1", "DC0701", self.a.put, self.a, dc.tensor({ 2 }, "i32"), 0)
  raises("put: dtypes differ: f32[2, 3] and i32[3]", "DC0201", self.a.put, self.a, i, dc.zeros "i32[3]")
  raises("put: 0.5 does not fit i32", "DC0203", function() return dc.zeros "i32[3]":put(i, 0.5) end)
  local g = dc.fn("g(x: f32[3], v: f32[2], at: i32[2]) -> f32[3], f32[2]", function(x, v, at)
    local d = dc.grad((x:put(at, v) * dc.tensor { 1, 2, 3 }):sum(), { x, v })
    return d[1], d[2]
  end)
  local gx, gv = g({ 0, 0, 0 }, { 1, 1 }, { 2, 0 })
  lu.assertEquals({ gx:totable(), gv:totable() }, { { 0, 2, 0 }, { 3, 1 } })
end

function TestTake:test_one_hot()
  local y = dc.tensor({ 2, 0 }, "i32")
  lu.assertEquals(y:one_hot(3):totable(), { { 0, 0, 1 }, { 1, 0, 0 } })
  lu.assertEquals(y:one_hot(3).dtype, "f32")
  lu.assertEquals(dc.one_hot(dc.tensor({ 1 }, "u8"), 2, "bool"):totable(), { { false, true } })
  raises("one_hot: index 2 outside 0..1 of axis 2 at position 1", "DC0701", y.one_hot, y, 2)
  raises("one_hot: f32[2]: an integer is needed", "DC0202", dc.one_hot, dc.zeros "f32[2]", 3)
  raises("one_hot: the number of classes is at least 1, not 0", "DC0101", y.one_hot, y, 0)
end

function TestTake:test_triangles()
  local m = dc.ones "f32[2, 3]"
  lu.assertEquals(m:tril():totable(), { { 1, 0, 0 }, { 1, 1, 0 } })
  lu.assertEquals(m:tril(1):totable(), { { 1, 1, 0 }, { 1, 1, 1 } })
  lu.assertEquals(m:triu():totable(), { { 1, 1, 1 }, { 0, 1, 1 } })
  lu.assertEquals(m:triu(-1):totable(), { { 1, 1, 1 }, { 1, 1, 1 } })
  lu.assertEquals(dc.ones "bool[2, 2, 2]":tril():totable()[2], { { true, false }, { true, true } })
  lu.assertEquals(dc.tensor({ { 1, inf }, { 2, nan } }):tril(-1):totable(), { { 0, 0 }, { 2, 0 } })
  raises("tril: two axes are needed, there is 1", "DC0101", dc.tril, dc.ones "f32[2]")
end

TestHints = {}

function TestHints:test_of_other_libraries()
  local x = dc.zeros "f32[2]"
  for name, hint in pairs {
    view = ":reshape", unsqueeze = ":reshape", t = ":transpose()", cat = "dc.concat({ a, b }, axis)",
    backward = "opt:step(loss) takes the gradients, or dc.grad(loss, params)",
    index_select = ":take(idx, axis)", detach = "dc.stop_gradient(x)", numel = "the product of x.shape",
  } do
    local err = raises(("a tensor has no '%s'"):format(name), "DC0110", function() return x[name](x) end)
    lu.assertEquals(err.hint, hint)
  end
  for name, hint in pairs { range = "dc.arange(first, stop, step), or dc.iota(n)", cat = "dc.concat({ a, b }, axis)",
    manual_seed = "dc.seed(n)", Tensor = "dc.tensor", randn_like = "dc.randn(x)" } do
    local err = raises(("deepc has no '%s'"):format(name), "DC0110", function() return dc[name] end)
    lu.assertEquals(err.hint, hint)
  end
  lu.assertNil(raises("a tensor has no 'nonsense'", "DC0110", function() return x:nonsense() end).hint)
end

-- A name with a hint is a name that is not there.
function TestHints:test_none_of_them_exists()
  local f = io.open "dsl/base/hints.c"
  if f == nil then lu.skip "the source is not here" end
  local text = f:read "a"
  f:close()
  local of_tensors, of_module = text:match "names fields.-=(.-)\n};.-names functions.-=(.-)\n};"
  local x = dc.zeros "f32[2]"
  for name in of_tensors:gmatch '\n    {"([%w_]+)"' do
    lu.assertFalse(pcall(function() return x[name] end), name)
  end
  for name in of_module:gmatch '\n    {"([%w_]+)"' do
    lu.assertFalse(pcall(function() return dc[name] end), name)
  end
end
