-- Powers: what IEEE 754 says, exact ones, the same bits on every device, gradients, integers.
local lu = require "luaunit"
local dc = require "deepc"
local raises = require("tests.lua.check").raises

local nan, inf = 0 / 0, 1 / 0

TestPower = {}

local function same(got, want, what)
  lu.assertEquals(#got, #want, what)
  for i, v in ipairs(want) do
    local equal = got[i] == v and 1 / got[i] == 1 / v or got[i] ~= got[i] and v ~= v
    lu.assertTrue(equal, ("%s %d: %s, not %s"):format(what, i, got[i], v))
  end
end

local function typed(n, dtype, body)
  return dc.fn(("f(x: %s[%d], y: %s[%d])"):format(dtype, n, dtype, n), body)
end

local function power(x, y) return x ^ y end

function TestPower:test_special_values()
  local a = { 0, 0, 1, 1, 1, -1, -2, -2, -0.5, inf, -inf, -inf, -0.0, -0.0, -8, -8, nan, 2, 0.5, -0.0, 0 }
  local b = { nan, -inf, nan, inf, -inf, inf, inf, -inf, inf, 0, 0, 0.5, -1, -3, 1 / 3, 3, 0, -149, 148, 2, -2 }
  local want = { nan, inf, 1, 1, 1, 1, inf, 0, 0, 1, 1, inf, -inf, -inf, nan, -512, 1, 2.0 ^ -149, 2.0 ^ -148, 0, inf }
  for _, dtype in ipairs { "f32", "f64" } do
    local x, y = dc.tensor(a, dtype), dc.tensor(b, dtype)
    same((x ^ y):totable(), want, dtype)
    same(typed(#a, dtype, power)(x, y):totable(), want, dtype .. " compiled")
    for i, v in ipairs(a) do
      same((v ^ y[{ { i, i } }]):totable(), { want[i] }, "constant base")
      same((x[{ { i, i } }] ^ b[i]):totable(), { want[i] }, "constant exponent")
    end
  end
  local edges = dc.tensor { -inf, -0.0, 0, inf, nan, -4, 4 }
  same((edges ^ 0.5):totable(), { inf, 0, 0, inf, nan, nan, 2 }, "root")
  same((edges ^ -1):totable(), { -0.0, -inf, inf, 0, nan, -0.25, 0.25 }, "inverse")
  same((edges ^ 3):totable(), { -inf, -0.0, 0, inf, nan, -64, 64 }, "cube")
  same((edges ^ 0):totable(), { 1, 1, 1, 1, 1, 1, 1 }, "0")
end

function TestPower:test_exact()
  for base = 2, 40 do
    for _, kind in ipairs { { "f32", 2 ^ 24 }, { "f64", 2 ^ 53 } } do
      local e, want = {}, {}
      while base ^ (#e + 1) <= kind[2] do
        e[#e + 1], want[#want + 1] = #e + 1, base ^ (#e + 1)
      end
      same((base ^ dc.tensor(e, kind[1])):totable(), want, kind[1] .. " base " .. base)
    end
  end
  lu.assertEquals((3 ^ dc.tensor { 9 }):cast("i32"):item(), 19683)
  lu.assertEquals((dc.tensor({ 10 }, "i32") ^ dc.tensor({ 7 }, "i32")):cast("i32"):item(), 10000000)
  lu.assertEquals((2 ^ dc.tensor { 100 }):item(), 2.0 ^ 100)
end

-- NaN as a number, since its bits differ.
local function bytes(t) return dc.where(t:isnan(), 1234.5, t):bytes() end

local function powers(x, y) return x ^ y, x ^ 1.7 + 1, 3 ^ y - y, x * (x * x) ^ y end

-- Exponents of products and roots, and one that is known to be a number only where the graph was simplified.
local function short_powers(x)
  local results = {}
  local exponents = { 4, 5, 7, 10, 33, 64, 127, -2, -3, -9, -33, -64, -128, 0.25, 0.75, 1.5, 2.5, -0.5, -1.25, -2.75 }
  for i, e in ipairs(exponents) do
    results[i] = x ^ e + 1
  end
  results[#results + 1] = x ^ (dc.zeros(x) + 4)
  return dc.stack(results)
end

local devices = { "eval", "cpu", "cpu:cc", "cpu:baseline", "cpu:avx2", "sim:cpu", "sim:cuda", "opencl:0" }

function TestPower:test_same_bits_on_every_device()
  local count = 0
  for _, dtype in ipairs { "f32", "f64", "f16" } do
    local x = dc.concat({ dc.rand(dtype .. "[300]", { seed = 1, low = 0, high = 4 }),
      dc.randn(dtype .. "[200]", { seed = 2 }) * 100, dc.tensor({ 0, -0.0, inf, -inf, nan, 1e-5, -1, 1 }, dtype) }, 1)
    local whole = (dc.randn("f32[200]", { seed = 4 }) * 3):round():cast(dtype)
    local y = dc.concat({ dc.randn(dtype .. "[300]", { seed = 3 }) * 20, whole,
      dc.tensor({ -1, -3, 0.5, 3, 0, 2, inf, nan }, dtype) }, 1)
    local want
    for _, device in ipairs(devices) do
      local there, a = pcall(function() return x:to(device) end)
      if there then
        local b = y:to(device)
        local f = dc.fn(("f(x: %s[n], y: %s[n])"):format(dtype, dtype), powers)
        local p, q, r, s = f(a, b)
        local short = dc.fn(("f(x: %s[n])"):format(dtype), short_powers)(a)
        local got = { bytes(p:to "eval"), bytes(q:to "eval"), bytes(r:to "eval"), bytes((a ^ b):to "eval"),
          bytes(short:to "eval") }
        want = want or got
        lu.assertEquals(#got, #want)
        for i in ipairs(want) do
          lu.assertTrue(got[i] == want[i], ("%s on %s, %d"):format(dtype, device, i))
        end
        lu.assertEquals(s.shape, x.shape)
        count = count + 1
      end
    end
  end
  lu.assertTrue(count >= 12)
end

local function slope_x(a, b)
  local x = dc.tensor(a):watch()
  return dc.grad((x ^ (type(b) == "table" and dc.tensor(b) or b)):sum(), x):totable()
end

local function f32(list) return dc.tensor(list):totable() end

function TestPower:test_gradients_of_bases()
  same(slope_x({ 0, 0, 0, 0, 0 }, { 1, 0.5, -1, 2, 0 }), { 1, inf, -inf, 0, 0 }, "at 0")
  same(slope_x({ 2.0 ^ -100, 2.0 ^ 100, inf, nan, -1, -3 }, { 2, 2, 2, 2, 0.5, 3 }),
    { 2.0 ^ -99, 2.0 ^ 101, inf, nan, nan, 27 }, "far")
  same(slope_x({ 2.0 ^ -100, 2.0 ^ 100, inf, -1, nan }, 1.5), { 1.5 * 2.0 ^ -50, 1.5 * 2.0 ^ 50, inf, nan, nan }, "1.5")
  same(slope_x({ 0, inf, 2 }, -2), { -inf, -0.0, -0.25 }, "-2")
  same(slope_x({ 0, 16 }, 0.75), { inf, 0.375 }, "0.75")
  same(slope_x({ 0, 4, inf }, 0.5), { inf, 0.25, 0 }, "0.5")
  same(slope_x({ 0, 4 }, -0.5), { -inf, -0.0625 }, "-0.5")
  same(slope_x({ 0, inf, nan, 1e-40 }, { 0, 0, 0, 0 }), { 0, 0, 0, 0 }, "exponent 0")
  same(slope_x({ 0, -2, 3 }, 4), { 0, -32, 108 }, "4")
  local f = typed(4, "f32", function(x, y) return dc.grad((x ^ y):sum(), x) end)
  same(f({ 0, 1, 1e-30, 1e30 }, { 1, 1, 2, 2 }):totable(), f32 { 1, 1, 2e-30, 2e30 }, "compiled")
end

function TestPower:test_gradients_of_exponents()
  local y = dc.tensor({ 2, 0, -1, 3, -2, 1, 2 }):watch()
  local x = dc.tensor { 0, 0, 0, 1, inf, -2, 1 }
  same(dc.grad((x ^ y):sum(), y):totable(), { 0, 0, -inf, 0, 0, nan, 0 }, "exponents")
  local z = dc.tensor({ 3, 0.5 }, "f64"):watch()
  local got = dc.grad((2 ^ z):sum(), z):totable()
  lu.assertAlmostEquals(got[1], 8 * math.log(2), 1e-14)
  lu.assertAlmostEquals(got[2], 2 ^ 0.5 * math.log(2), 1e-15)
end

function TestPower:test_second_gradients()
  local f = dc.fn("f(x: f64[3], y: f64[3])", function(x, y)
    return dc.grad(dc.grad((x ^ y):sum(), x):sum(), x), dc.grad(dc.grad((x ^ 4):sum(), x):sum(), x)
  end)
  local a, b = f({ 0, 0, 3 }, { 2, 0, 3 })
  same(a:totable(), { 2, 0, 18 }, "tensor")
  same(b:totable(), { 0, 0, 108 }, "number")
end

-- Of integers by multiplication: it wraps; with a negative exponent it is 1 / a^-b, truncated.
function TestPower:test_integers()
  local a = { 3, 2, 2, -2, -3, 0, 0, 1, -1, -1, 5, 10 }
  local b = { 20, 31, 32, 31, 3, 0, -1, -5, -5, -6, -2, 7 }
  local want = { 3486784401 - (1 << 32), -(1 << 31), 0, -(1 << 31), -27, 1, -1, 1, -1, 1, 0, 10000000 }
  local x, y = dc.tensor(a, "i32"), dc.tensor(b, "i32")
  lu.assertEquals(x:integer_pow(y):totable(), want)
  lu.assertEquals(typed(#a, "i32", dc.integer_pow)(x, y):totable(), want)
  lu.assertEquals(dc.tensor({ 3, -3 }, "i64"):integer_pow(39):totable(), { 4052555153018976267, -4052555153018976267 })
  lu.assertEquals(dc.tensor({ 3, 7 }, "u8"):integer_pow(dc.tensor({ 6, 255 }, "u8")):totable(), { 217, 183 })
  lu.assertEquals((dc.tensor({ 3 }, "i32") ^ 2).dtype, "f32")
  raises("integer_pow: f32[1]: an integer is needed", "DC0202", dc.integer_pow, dc.ones "f32[1]", 2)
end

-- Outside of typed functions, too, the exponent is a constant of the kernel: it is not the code of all of them.
function TestPower:test_lazy_powers_have_the_bits_of_typed_ones()
  local x = dc.rand("f32[64]", { seed = 3 }) * 4
  for _, n in ipairs { 4, -3, 0.25, 2.75, 11, 33, -64, 127 } do
    local f = dc.fn("f(v: f32[64]) -> f32[64]", function(v) return v ^ n end)
    lu.assertEquals((x ^ n):totable(), f(x):totable(), n)
  end
end

-- Whole exponents past 10 are arguments: one program, which has the bits of kernels of each exponent.
function TestPower:test_lazy_programs_of_whole_exponents()
  local x = (dc.rand("f32[70000]", { seed = 3 }) * 4 - 2):clone()
  local before = dc.stats().lazy_programs
  for n = 11, 70 do
    for _, e in ipairs { n, -n } do
      local y = x ^ e
      if n % 16 == 1 then
        local f = dc.fn("f(v: f32[70000]) -> f32[70000]", function(v) return v ^ e end)
        lu.assertTrue(bytes(y) == bytes(f(x)), e)
      else
        y:sum():item()
      end
    end
  end
  local many = dc.stats().lazy_programs - before
  lu.assertTrue(many <= 8, many)
  local w = dc.tensor({ 0.5, -2, 1 }):watch()
  lu.assertAlmostEquals(dc.grad((w ^ 12):sum(), w):totable()[2], -12 * 2 ^ 11, 1e-2)
  lu.assertEquals(dc.grad((w ^ -11):sum(), w):totable()[3], -11)
end

function TestPower:test_code_of_lazy_powers()
  lu.skipIf(not dc.device():find "^cpu", "the size of the code of CPUs")
  local program = require "tests.lua.program"
  local script = os.tmpname()
  local file <close> = assert(io.open(script, "w"))
  file:write 'local dc = require "deepc" local x = dc.rand "f32[64]" x = x:clone() print((x ^ 4):sum():item() > 0)'
  file:flush()
  local text = program.run(script, "DEEPC_DEBUG=flat DEEPC_LAZY=compile DEEPC_CACHE=off")
  os.remove(script)
  lu.assertStrContains(text, "true")
  local _, lines = text:gsub("\n", "")
  lu.assertTrue(lines > 10 and lines < 2000, lines)
end
