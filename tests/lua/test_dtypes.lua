-- Element types through typed functions: where 16-bit floats round, what integers of all widths do.

local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"

TestDtypes = {}

local function run(sig, body, ...)
  return dc.fn(sig, body)(...)
end

function TestDtypes:test_casts_that_were_written_round()
  local x = dc.tensor({ 1.0001, 65519, 65520, 1e-8, -0.1 }, "f32[5]")
  local function there_and_back(dtype)
    return run("f(a: f32[5]) -> f32[5]", function(a) return a:cast(dtype):cast "f32" end, x):totable()
  end
  lu.assertEquals(there_and_back "f16", { 1, 65504, math.huge, 0, -0.0999755859375 })
  lu.assertEquals(there_and_back("bf16")[2], 65536)
  lu.assertEquals(there_and_back "f64", x:totable())
end

function TestDtypes:test_sums_of_short_floats_have_more_digits()
  for _, dtype in ipairs { "f16", "bf16" } do
    local ones = dc.ones(dtype .. "[4096]")
    local sum = run(("f(x: %s[4096]) -> %s[]"):format(dtype, dtype), function(x) return x:sum() end, ones)
    lu.assertEquals(sum:cast("f32"):item(), 4096)
  end
end

function TestDtypes:test_integers_wrap_at_their_width()
  for bits, dtype in pairs { [8] = "i8", [16] = "i16", [32] = "i32" } do
    local top = 2 ^ (bits - 1)
    local x = dc.tensor({ top - 1, -top }, dtype .. "[2]")
    local sig = ("f(a: %s[2]) -> %s[2]"):format(dtype, dtype)
    lu.assertEquals(run(sig, function(a) return a + 1 end, x):totable(), { -top, 1 - top })
    lu.assertEquals(run(sig, function(a) return a // 0 end, x):totable(), { -1, -1 })
    lu.assertEquals(run(sig, function(a) return a % 0 end, x):totable(), { top - 1, -top })
  end
end

function TestDtypes:test_floats_to_integers_saturate()
  local x = dc.tensor({ 300.7, -300.7, 0 / 0, 1e30 }, "f64[4]")
  local function to(dtype)
    local sig = ("f(a: f64[4]) -> %s[4]"):format(dtype)
    return run(sig, function(a) return a:cast(dtype) end, x):totable()
  end
  lu.assertEquals(to "i8", { 127, -128, 0, 127 })
  lu.assertEquals(to "u8", { 255, 0, 0, 255 })
  lu.assertEquals(to "i16", { 300, -300, 0, 32767 })
  lu.assertEquals(to "u16", { 300, 0, 0, 65535 })
  lu.assertEquals(to("i64")[4], math.maxinteger)
end

-- Sums, products and dots of integers are those of the integers, whatever holds them; means are rounded once.
function TestDtypes:test_sums_of_integers()
  local function all(f, x)
    local lazy = f(x)
    local compiled = dc.fn(("f(a: %s[%d]) -> %s[]"):format(x.dtype, #x, lazy.dtype), function(a) return f(a) end)(x)
    lu.assertEquals({ compiled:item(), compiled.dtype }, { lazy:item(), lazy.dtype })
    return lazy:item(), lazy.dtype
  end
  local most = { i8 = -128, u8 = 255, i16 = -32768, u16 = 65535, i32 = -(1 << 30), u32 = (1 << 30) + 5 }
  for dtype, v in pairs(most) do
    local n = dtype:match "8" and 40000 * 300 or 70000
    local x = dc.full(("%s[%d]"):format(dtype, n), v)
    local wide = dtype:match "^u" and "u64" or "i64"
    lu.assertEquals({ all(function(a) return a:sum() end, x) }, { n * v, wide }, dtype)
    lu.assertEquals({ all(function(a) return a:mean() end, x) }, { dc.tensor(v):item(), "f32" }, dtype)
    lu.assertEquals({ all(function(a) return a[{ { 1, 2 } }]:prod() end, x) }, { v * v, wide }, dtype)
    lu.assertEquals({ all(function(a) return a:sum { dtype = "i32" } end, x) },
      { (n * v + (1 << 31)) % (1 << 32) - (1 << 31), "i32" }, dtype)
    local terms, product = dtype:match "8" and 33025 or 2, dtype:match "8" and "i32" or wide
    local short = x[{ { 1, terms } }]
    lu.assertEquals({ all(function(a) return a:matmul(a) end, short) }, { terms * v * v, product }, dtype)
    lu.assertEquals({ all(function(a) return dc.einsum("i, i ->", a, a) end, short) },
      { terms * v * v, product }, dtype)
  end
  local square = function(a) return a:matmul(a, { dtype = "i32" }) end
  lu.assertEquals({ all(square, dc.full("i32[4]", 65536)) }, { 0, "i32" })
  lu.assertEquals({ all(function(a) return a:sum() end, dc.ones "bool[70000]") }, { 70000, "i32" })
  lu.assertEquals(dc.full("u8[300]", 255):segment_sum(dc.zeros "i32[300]", 1):totable(), { 76500 })
  check.fails("products of u8 are i32, which holds a sum of 33025 of them, not of 33026",
    dc.matmul, dc.ones "u8[33026]", dc.ones "u8[33026]")
  local odd = dc.concat { dc.ones "i32[16777217]" * 1, dc.full("i32[3]", 5) } -- sums that f32 does not hold
  lu.assertEquals(odd:mean():item(), dc.tensor(16777232 / 16777220, "f64"):cast("f32"):item())
  for _, dtype in ipairs { "i64", "u64" } do -- whose sum wraps
    lu.assertEquals(dc.full(dtype .. "[4]", math.maxinteger):mean():item(), 2 ^ 63, dtype)
  end
end

-- Every function of floats, lazy and typed, near what it gives in f64; its gradient exists.
function TestDtypes:test_functions_of_all_floats()
  local names = [[neg abs exp log sqrt rsqrt square reciprocal sign floor ceil round trunc expm1 log1p erf sin cos
    asin acos atan sinh cosh asinh atanh exp2 log2 log10 cbrt erfc erf_inv lgamma digamma tan relu sigmoid
    tanh silu softplus gelu sum prod mean max min var std norm logsumexp softmax log_softmax cumsum
    cumprod cummax cummin logcumsumexp]]
  local along_axis = { softmax = true, log_softmax = true, cumsum = true, cumprod = true, cummax = true, cummin = true,
    logcumsumexp = true }
  local unit = { f16 = 2 ^ -11, bf16 = 2 ^ -8, f32 = 2 ^ -24, f64 = 2 ^ -53 }
  local values = { 0.25, 0.5, 0.75 } -- the same in all of them
  local function flat(t) return type(t) == "table" and t or { t } end
  for name in names:gmatch "[%w_]+" do
    local function f(x) return x[name](x, along_axis[name] and 1 or nil) end
    local want = flat(f(dc.tensor(values, "f64")):totable())
    for dtype, u in pairs(unit) do
      local input = dc.tensor(values, dtype)
      local lazy = f(input)
      lu.assertEquals(lazy.dtype, dtype)
      local sig = ("f(x: %s[3]) -> %s[%s], %s[3]"):format(dtype, dtype, table.concat(lazy.shape, ", "), dtype)
      local typed, slope = dc.fn(sig, function(x)
        local y = f(x)
        return y, dc.grad(y:sum(), x, { unused = "zero" })
      end)(input)
      lu.assertEquals(#slope:totable(), 3)
      for i, v in ipairs(want) do
        local margin, what = 8 * u * math.max(1, math.abs(v)), name .. " of " .. dtype
        lu.assertAlmostEquals(flat(lazy:totable())[i], v, margin, what)
        lu.assertAlmostEquals(flat(typed:totable())[i], v, margin, what)
      end
    end
  end
end

function TestDtypes:test_draws_of_all_dtypes()
  local function lists(name, dtypes, options)
    for dtype in dtypes:gmatch "%w+" do
      local lazy = dc[name](dtype .. "[5]", options)
      local typed = run(("f() -> %s[5]"):format(dtype), function() return dc[name](dtype .. "[5]", options) end)
      lu.assertEquals(lazy.dtype, dtype)
      lu.assertEquals(typed:totable(), lazy:totable(), name .. " of " .. dtype)
    end
  end
  lists("rand", "f16 bf16 f32 f64", { low = -1, high = 1, seed = 3 })
  lists("randn", "f16 bf16 f32 f64", { std = 2, seed = 3 })
  lists("randint", "i8 i16 i32 i64 u8 u16 u32 u64", { high = 100, seed = 3 })
  lists("bernoulli", "bool", { p = 0.5, seed = 3 })
end

-- Compiled in vectors, beside the interpreter: what is out of range ends at the range, NaN is 0.
function TestDtypes.test_casts_of_floats_to_integers()
  local edges = { 0 / 0, 1 / 0, -1 / 0, 127.5, 128, -128.5, -129, 255.9, 256, -0.5, 65535.5, 65536, 32767.5, 32768,
    2147483647, 2147483648, -2147483648, 4294967040, 4294967296, 9.3e18, -9.3e18, 1.9e19, 3.7, -3.7 }
  local values = {}
  for i = 1, 67 do
    values[i] = edges[i % #edges + 1]
  end
  for _, from in ipairs { "f32", "f64" } do
    local x = dc.tensor(values, from .. "[67]")
    for _, to in ipairs { "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64" } do
      local f = dc.fn(("f(a: %s[67]) -> %s[67]"):format(from, to), function(a) return a:cast(to) end)
      lu.assertEquals(f(x):cast("i64"):totable(), x:cast(to):cast("i64"):totable(), from .. " to " .. to)
    end
  end
end

TestTable = {}

-- What dc.dtypes says of a float is what its numbers do: the distance of 1 and the next one, and the largest one.
function TestTable:test_properties()
  local seen = {}
  for _, t in ipairs(dc.dtypes()) do
    seen[t.name] = t.kind
    local x = dc.zeros(t.name .. "[2]")
    lu.assertEquals(x.dtype, t.name)
    if t.kind == "float" then
      local one = dc.full(t.name .. "[]", 1)
      local function is_one(v) return (one + dc.full(t.name .. "[]", v)):eq(one):item() end
      lu.assertEquals({ is_one(2 ^ -t.fraction), is_one(2 ^ -(t.fraction + 1)) }, { false, true }, t.name)
      local bias = 2 ^ (t.exponent - 1) - 1
      lu.assertEquals(dc.full(t.name .. "[]", 2 ^ bias):cast("f64"):item(), 2 ^ bias, t.name)
      lu.assertEquals(t.bits, 1 + t.exponent + t.fraction)
    elseif t.kind == "integer" then
      local least = dc.zeros(t.name .. "[]") - 1
      lu.assertEquals(least:cast("f64"):item() < 0, t.signed, t.name)
    end
  end
  lu.assertEquals({ seen.bool, seen.u8, seen.bf16, seen.c128 }, { "bool", "integer", "float", "complex" })
end

return TestDtypes
