-- Operations outside typed functions, which compute at once.
local lu = require "luaunit"
local dc = require "deepc"

local function t(values, type_text)
  return dc.tensor(values, type_text)
end

local function close(got, want, tolerance)
  lu.assertEquals(#got, #want)
  for i = 1, #want do
    lu.assertAlmostEquals(got[i], want[i], tolerance or 1e-6)
  end
end

TestArithmetic = {}

function TestArithmetic:test_operators()
  local a, b = t { 1, 2, -3 }, t { 4, -5, 6 }
  lu.assertEquals((a + b):totable(), { 5, -3, 3 })
  lu.assertEquals((a - b):totable(), { -3, 7, -9 })
  lu.assertEquals((a * b):totable(), { 4, -10, -18 })
  lu.assertEquals((b / t { 2, 2, 4 }):totable(), { 2, -2.5, 1.5 })
  lu.assertEquals((-a):totable(), { -1, -2, 3 })
  lu.assertEquals((2 - a):totable(), { 1, 0, 5 })
  lu.assertEquals((a * 2 + 1):totable(), { 3, 5, -5 })
end

function TestArithmetic:test_floor_division_and_modulo_are_those_of_lua()
  local xs, ys = { 7, -7, 7, -7, 6 }, { 2, 2, -2, -2, 3 }
  local quotient, remainder = {}, {}
  for i = 1, #xs do
    quotient[i], remainder[i] = xs[i] // ys[i], xs[i] % ys[i]
  end
  for _, dtype in ipairs { "i32[5]", "f32[5]" } do
    local x, y = t(xs, dtype), t(ys, dtype)
    lu.assertEquals((x // y):totable(), quotient)
    lu.assertEquals((x % y):totable(), remainder)
  end
  lu.assertEquals(t(xs, "i32[5]"):rem(t(ys, "i32[5]")):totable(), { 1, -1, 1, -1, 0 })
end

function TestArithmetic:test_integer_division_by_zero_is_no_trap()
  local x, zero = t({ 5, -5, 0 }, "i32[3]"), dc.zeros "i32[3]"
  lu.assertEquals((x // zero):totable(), { -1, -1, -1 })
  lu.assertEquals((x % zero):totable(), { 5, -5, 0 })
end

function TestArithmetic:test_division_and_power_of_integers_are_f32()
  local x = t({ 1, 2, 3 }, "i32[3]")
  lu.assertEquals((x / 2).dtype, "f32")
  lu.assertEquals((x / 2):totable(), { 0.5, 1, 1.5 })
  lu.assertEquals((x ^ 2):totable(), { 1, 4, 9 })
  lu.assertEquals((x ^ 2).dtype, "f32")
end

-- What each dtype gives with a number on either side.
function TestArithmetic:test_numbers_beside_every_dtype()
  for _, dtype in ipairs { "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64" } do
    local x = t({ 7, 2 }, dtype)
    local quotient = dtype:sub(1, 1) == "f" and dtype or "f32"
    for _, r in ipairs { x + 1, 1 + x, x - 1, 9 - x, x * 2, 2 * x, x // 2, 9 // x, x % 2, 9 % x } do
      lu.assertEquals(r.dtype, dtype)
    end
    for _, r in ipairs { x / 2, 2 / x, x ^ 2, 2 ^ x } do lu.assertEquals(r.dtype, quotient, dtype) end
    lu.assertEquals((9 - x):totable(), { 2, 7 })
    lu.assertEquals((9 // x):totable(), { 1, 4 })
    lu.assertEquals((9 % x):totable(), { 2, 1 })
    lu.assertEquals((x / 2):totable(), { 3.5, 1 })
    lu.assertEquals(x:lt(5).dtype, "bool")
    lu.assertEquals(x:lt(5):totable(), { false, true })
    if dtype:sub(1, 1) ~= "f" then
      local ok, err = pcall(function() return x + 0.5 end)
      lu.assertFalse(ok)
      lu.assertEquals(err.code, "DC0203")
      lu.assertEquals((x << 1):totable(), { 14, 4 })
      lu.assertEquals((1 << x):totable(), { 128 - (dtype == "i8" and 256 or 0), 4 })
      lu.assertEquals((x >> 1):totable(), { 3, 1 })
    end
    if dtype:sub(1, 1) == "u" then lu.assertFalse(pcall(function() return x + -1 end)) end
  end
  lu.assertFalse(pcall(function() return t({ 1 }, "i8") + 128 end))
  lu.assertFalse(pcall(function() return t({ 1 }, "i32") + t({ 1 }, "i64") end))
  lu.assertFalse(pcall(function() return t({ 1 }, "f64") + t { 1 } end))
end

function TestArithmetic:test_power()
  local x = t { 1, 4, 9 }
  lu.assertEquals((x ^ 0.5):totable(), { 1, 2, 3 })
  lu.assertEquals((x ^ -1):totable()[2], 0.25)
  lu.assertEquals((x ^ 3):totable(), { 1, 64, 729 })
  close((x ^ 1.5):totable(), { 1, 8, 27 }, 1e-4)
  close((2 ^ t { 1, 3, 0.5 }):totable(), { 2, 8, 2 ^ 0.5 })
  close((x ^ t { 2, 0.5, 1 }):totable(), { 1, 2, 9 }, 1e-5)
end

function TestArithmetic:test_powers_at_the_edges()
  local x = t { 0, -2, 3 }
  lu.assertEquals((x ^ 0):totable(), { 1, 1, 1 })
  lu.assertEquals((x ^ 17):totable(), { 0, -2 ^ 17, 3 ^ 17 // 16 * 16 }) -- the nearest f32
  lu.assertEquals((x ^ -1):totable(), { 1 / 0, -0.5, dc.tensor(1 / 3):item() })
  close((x ^ t { 2, 3, 0.5 }):totable(), { 0, -8, 3 ^ 0.5 }, 1e-5)
  lu.assertEquals((t { 0, 0, 0 } ^ t { 0, 1.5, -1 }):totable(), { 1, 0, 1 / 0 })
  lu.assertIsNaN((t { -2 } ^ t { 0.5 })[1]:item())
  lu.assertEquals((2 ^ t { 0, -1 }):totable(), { 1, 0.5 })
end

-- exp(2v) - 1 loses no digits in this form: of v - v^2 + ... 60 terms.
local function tanh(v)
  local sum, term = 0, 1
  for k = 1, 60 do
    term = term * 2 * v / k
    sum = sum + term
  end
  return sum / (sum + 2)
end

function TestArithmetic:test_tanh_of_f64()
  for i = 1, 400 do
    local v = (i / 400) ^ 3 * 1.5
    for _, x in ipairs { v, -v } do
      lu.assertAlmostEquals(dc.tensor(x, "f64"):tanh():item() / tanh(x), 1, 3e-15, x)
    end
  end
end

function TestArithmetic:test_tanh_is_accurate_near_zero()
  for _, v in ipairs { 1e-8, 1e-4, 0.01, 0.2, 0.249, 0.251, 0.5, 3, 20 } do
    local x = dc.tensor(v):item()
    local e = math.exp(-2 * x)
    local want = x < 1e-3 and x - x ^ 3 / 3 or (1 - e) / (1 + e)
    lu.assertAlmostEquals(dc.tensor(v):tanh():item() / want, 1, 4e-7)
    lu.assertEquals(dc.tensor(-v):tanh():item(), -dc.tensor(v):tanh():item())
  end
end

-- The gradient of f at a number, of the compiled function.
local function slope(f, v)
  local g = dc.fn("g(x: f32[]) -> f32[]", function(x)
    local y = f(x)
    return dc.grad(y, x)
  end)
  return g(v):item()
end

function TestArithmetic:test_gradients_far_out_are_numbers()
  for _, v in ipairs { -1000, -100, -50, 50, 100, 1000 } do
    lu.assertAlmostEquals(slope(dc.sigmoid, v), 0, 1e-20)
    lu.assertAlmostEquals(slope(dc.tanh, v), 0, 1e-20)
  end
  lu.assertAlmostEquals(slope(dc.sigmoid, 0), 0.25, 1e-7)
  lu.assertAlmostEquals(slope(dc.tanh, 0), 1, 1e-7)
  lu.assertAlmostEquals(slope(dc.tanh, -0.5), 1 - ((1 - math.exp(-1)) / (1 + math.exp(-1))) ^ 2, 1e-6)
  lu.assertEquals(slope(function(x) return x ^ 1.5 end, 0), 0)
  lu.assertEquals(slope(function(x) return x ^ 17 end, 0), 0)
  lu.assertEquals(slope(function(x) return x ^ 17 end, -1), 17)
  lu.assertEquals(slope(function(x) return x ^ 0 end, 0), 0)
end

-- The last product of exp, contracted with the sum that follows, must not escape infinity.
function TestArithmetic:test_infinite_powers_of_e_stay_infinite_in_sums()
  for _, dtype in ipairs { "f32", "f64", "bf16", "f16" } do
    local x = t({ math.huge, 1000, -math.huge, -1000, 1 }, dtype .. "[5]")
    local function compute(body) -- alone in its kernel, for only a product used once is contracted
      return dc.fn(("f(v: %s[5]) -> %s[5]"):format(dtype, dtype), body)(x):totable()
    end
    local a = compute(function(v) return v - v:exp() end)
    local b = compute(function(v) return v:exp() + v end)
    local c = compute(function(v) return v - v:expm1() end)
    for _, difference in ipairs { a, c } do
      lu.assertNaN(difference[1])
      lu.assertEquals(difference[2], -math.huge)
      lu.assertEquals(difference[3], -math.huge)
    end
    lu.assertEquals({ b[1], b[2], b[3] }, { math.huge, math.huge, -math.huge })
    lu.assertEquals(a[4], -1000)
    lu.assertAlmostEquals(a[5], 1 - math.exp(1), 0.02)
  end
end

function TestArithmetic:test_numbers_beside_a_condition()
  local m = t({ true, false }, "bool")
  lu.assertEquals(dc.where(m, 1, 2):totable(), { 1, 2 })
  lu.assertEquals(dc.where(m, 1, 2).dtype, "f32")
  lu.assertEquals(dc.where(true, t { 1, 2 }, 5):totable(), { 1, 2 })
  lu.assertEquals(dc.where(m, t({ 7, 8 }, "i32"), 0):totable(), { 7, 0 })
end

function TestArithmetic:test_bits()
  local a, b = t({ 12, 10 }, "i32[2]"), t({ 10, 3 }, "i32[2]")
  lu.assertEquals((a & b):totable(), { 8, 2 })
  lu.assertEquals((a | b):totable(), { 14, 11 })
  lu.assertEquals((a ~ b):totable(), { 6, 9 })
  lu.assertEquals((~a):totable(), { -13, -11 })
  lu.assertEquals((a << 1):totable(), { 24, 20 })
  lu.assertEquals((a >> 1):totable(), { 6, 5 })
  lu.assertEquals((~t({ true, false }, "bool")):totable(), { false, true })
end

function TestArithmetic:test_comparisons_are_methods()
  local a, b = t { 1, 2, 3 }, t { 2, 2, 2 }
  lu.assertEquals(a:lt(b):totable(), { true, false, false })
  lu.assertEquals(a:le(b):totable(), { true, true, false })
  lu.assertEquals(a:gt(b):totable(), { false, false, true })
  lu.assertEquals(a:ge(2):totable(), { false, true, true })
  lu.assertEquals(a:eq(2):totable(), { false, true, false })
  lu.assertEquals(a:ne(b):totable(), { true, false, true })
end

function TestArithmetic:test_broadcasting()
  local column, row = t { { 1 }, { 2 } }, t { 10, 20, 30 }
  lu.assertEquals((column + row):totable(), { { 11, 21, 31 }, { 12, 22, 32 } })
end

function TestArithmetic:test_functions()
  close(t({ 0, 1 }):exp():totable(), { 1, math.exp(1) })
  close(t({ 1, 2 }):log():totable(), { 0, math.log(2) })
  close(t({ 4, 9 }):sqrt():totable(), { 2, 3 })
  lu.assertEquals(dc.abs(t { -1, 2 }):totable(), { 1, 2 })
  lu.assertEquals(t({ -1.5, 2 }):floor():totable(), { -2, 2 })
  lu.assertEquals(t({ -1, 2 }):relu():totable(), { 0, 2 })
  close(t({ 0, 2 }):sigmoid():totable(), { 0.5, 1 / (1 + math.exp(-2)) })
  close(t({ 0.5, -30 }):tanh():totable(), { (math.exp(1) - 1) / (math.exp(1) + 1), -1 })
  lu.assertEquals(dc.maximum(t { 1, 5 }, 3):totable(), { 3, 5 })
  lu.assertEquals(dc.minimum(t { 1, 5 }, 3):totable(), { 1, 3 })
  lu.assertEquals(dc.where(t({ true, false }, "bool"), t { 1, 2 }, 0):totable(), { 1, 0 })
end

function TestArithmetic:test_cast()
  lu.assertEquals(t({ 1.9, -1.9, 1e20, -3e9 }):cast("i32"):totable(),
    { 1, -1, 2147483647, -2147483648 })
  lu.assertEquals(t({ 0 / 0 }):cast("i32"):totable(), { 0 })
  lu.assertEquals(t({ 300, -3 }):cast("u8"):totable(), { 255, 0 })
end

TestReduce = {}

function TestReduce:setUp()
  self.a = t { { 1, 2, 3 }, { 4, 5, 6 } }
end

function TestReduce:test_axes()
  lu.assertEquals(self.a:sum():item(), 21)
  lu.assertEquals(self.a:sum(1):totable(), { 5, 7, 9 })
  lu.assertEquals(self.a:sum(-1):totable(), { 6, 15 })
  lu.assertEquals(self.a:sum({ 1, 2 }):item(), 21)
  lu.assertEquals(self.a:sum({ axis = 2, keep = true }):totable(), { { 6 }, { 15 } })
  lu.assertEquals(dc.ones("f32[batch=2, 3]"):sum("batch"):totable(), { 2, 2, 2 })
end

function TestReduce:test_kinds()
  lu.assertEquals(self.a:max(2):totable(), { 3, 6 })
  lu.assertEquals(self.a:min(1):totable(), { 1, 2, 3 })
  lu.assertEquals(self.a:mean(2):totable(), { 2, 5 })
  lu.assertEquals(t({ 200, 100 }, "u8"):sum():item(), 300)
  lu.assertEquals(t({ 200, 100 }, "u8"):sum().dtype, "u64")
  lu.assertEquals(t({ 1, 2 }, "i32"):mean():item(), 1.5)
end

function TestReduce:test_argmax_is_0_based_data()
  local a = t { { 1, 9, 9 }, { 4, 2, 3 } }
  lu.assertEquals(a:argmax(2):totable(), { 1, 0 })
  lu.assertEquals(a:argmax(2).dtype, "i32")
end

function TestReduce:test_softmax()
  local s = t({ { 1000, 1000 }, { 0, math.log(3) } }):softmax(2):totable()
  close(s[1], { 0.5, 0.5 })
  close(s[2], { 0.25, 0.75 })
  local l = t({ { 0, math.log(3) } }):log_softmax(-1):totable()
  close(l[1], { math.log(0.25), math.log(0.75) })
end

TestMatmul = {}

function TestMatmul:test_matrices()
  local a, b = t { { 1, 2 }, { 3, 4 } }, t { { 5, 6 }, { 7, 8 } }
  lu.assertEquals(a:matmul(b):totable(), { { 19, 22 }, { 43, 50 } })
  lu.assertEquals(a:matmul(t { 1, 1 }):totable(), { 3, 7 })
  lu.assertEquals(t({ 1, 1 }):matmul(a):totable(), { 4, 6 })
  lu.assertEquals(t({ 1, 2 }):matmul(t { 3, 4 }):item(), 11)
end

function TestMatmul:test_batches()
  local a = dc.iota("i32[8]"):cast("f32"):reshape(2, 2, 2)
  local b = t { { 1, 0 }, { 0, 2 } }
  lu.assertEquals(a:matmul(b):totable(), { { { 0, 2 }, { 2, 6 } }, { { 4, 10 }, { 6, 14 } } })
end

TestTable = {}

function TestTable:test_comparisons_are_functions_too()
  for _, name in ipairs { "eq", "ne", "lt", "le", "gt", "ge" } do
    lu.assertEquals(dc[name](t { 1 }, 2):totable(), t({ 1 })[name](t { 1 }, 2):totable())
  end
  lu.assertEquals(dc.gt(3, t { 1, 4 }):totable(), { true, false })
end

-- Rows that other functions are made of: random numbers, x ^ 4, nn.GELU { approximate = "tanh" }.
local unnamed = { threefry = true, power = true, gelu_tanh = true }

function TestTable:test_every_elementwise_row_is_a_method_and_a_function()
  local seen = 0
  for _, op in ipairs(dc.ops()) do
    if op.class == "element-wise" and not unnamed[op.name] then
      seen = seen + 1
      local name = op.name == "not" and "bit_not" or op.name -- `not` is a word of Lua
      lu.assertIsFunction(dc[name])
      lu.assertIsFunction(dc.zeros "f32[]"[name])
    end
  end
  lu.assertTrue(seen >= 20)
end

function TestTable:test_operations_are_counted_when_they_are_computed()
  local before = dc.stats()
  local x = dc.ones "f32[2]" + 1
  lu.assertEquals(dc.stats().realized, before.realized)
  lu.assertEquals(x:totable(), { 2, 2 })
  lu.assertEquals(dc.stats().realized, before.realized + 1)
end

TestGates = {}

-- Where a gate is shut or open to the last bit its slope is 0 or 1, however large the number is.
function TestGates:test_slopes_far_out()
  local gates = {
    sigmoid = { function(x) return x:sigmoid() end, 0 }, silu = { function(x) return x:silu() end, 1 },
    gelu = { function(x) return x:gelu() end, 1 },
    gelu_tanh = { function(x) return x:gelu { approximate = "tanh" } end, 1 },
  }
  for _, dtype in ipairs { "f32", "f64", "bf16" } do
    local x = dc.tensor({ -math.huge, -1e30, -2e13, -2000, 2000, 1e20, 1e30, math.huge }, "f64"):cast(dtype)
    for name, gate in pairs(gates) do
      local f = dc.fn(("f(v: %s[8]) -> %s[8]"):format(dtype, dtype), function(v)
        return dc.grad(gate[1](v):sum(), v)
      end)
      local open = gate[2]
      lu.assertEquals(f(x):abs():cast("f64"):totable(), { 0, 0, 0, 0, open, open, open, open }, name .. " " .. dtype)
    end
  end
end
