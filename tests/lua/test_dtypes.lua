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

-- A product that is rounded is no part of a fused multiply-add.
function TestDtypes:test_products_that_were_rounded_are_added()
  local x = dc.linspace(-3, 3, 601):cast "f16"
  local got = run("f(v: f16[n]) -> f16[n]", function(v) return (v * v):cast("f32"):cast "f16" + v end, x)
  local product, sums = (x:cast "f32" * x:cast "f32"):cast("f16"):totable(), {}
  for i, v in ipairs(x:totable()) do
    sums[i] = product[i] + v
  end
  lu.assertEquals(got:totable(), dc.tensor(sums, "f64"):cast("f16"):totable())
end

function TestDtypes:test_sums_of_short_floats_have_more_digits()
  for _, dtype in ipairs { "f16", "bf16" } do
    local ones = dc.ones(dtype .. "[4096]")
    local sum = run(("f(x: %s[4096]) -> %s[]"):format(dtype, dtype), function(x) return x:sum() end, ones)
    lu.assertEquals(sum:cast("f32"):item(), 4096)
  end
end

-- ---- floats of 8 bits ----

-- The largest exponent of e4m3 is one of numbers, but for NaN.
local EIGHT = { f8e4m3fn = { bits = 3, bias = 7, most = 0x7e }, f8e5m2 = { bits = 2, bias = 15, most = 0x7b } }

local function number_of(t, code)
  local e, m = (code & 127) >> t.bits, code & ((1 << t.bits) - 1)
  local size = (e > 0 and 1 + m / (1 << t.bits) or m / (1 << t.bits)) * 2.0 ^ ((e > 0 and e or 1) - t.bias)
  if code & 127 > t.most then
    size = t.most == 0x7b and code & 127 == 0x7c and math.huge or 0 / 0
  end
  return code > 127 and -size or size
end

local function bits_of(v)
  return string.unpack("<i8", string.pack("<d", v))
end

-- The code of a double by the definition: the nearest number, of two that are as near the one with an even code; the
-- number behind the largest is one of them. A NaN is any.
local function code_of(t, v, saturates)
  local size, low, high = math.abs(v), 0, t.most
  local sign = bits_of(v) < 0 and 128 or 0
  if v ~= v then
    return nil
  end
  while low < high do
    local middle = (low + high + 1) // 2
    if number_of(t, middle) <= size then
      low = middle
    else
      high = middle - 1
    end
  end
  local here = number_of(t, low)
  local step = low < t.most and number_of(t, low + 1) - here or here - number_of(t, low - 1)
  if size - here > step / 2 or size - here == step / 2 and low % 2 == 1 then
    low = low + 1
  end
  return low > t.most and saturates and t.most | sign or low > t.most and t.most == 0x7e and -1 or low | sign
end

local function check_codes(dtype, x, got, values, saturates)
  local t, bytes = EIGHT[dtype], got:bytes()
  lu.assertEquals({ got.dtype, #bytes }, { dtype, #values })
  for i, v in ipairs(values) do
    local want, code = code_of(t, v, saturates), bytes:byte(i)
    local right = code == want
    if want == nil or want == -1 then
      right = number_of(t, code) ~= number_of(t, code)
    end
    if not right then
      lu.fail(("%s of %s %.17g: code %d, not %s"):format(dtype, x.dtype, v, code, want))
    end
  end
end

function TestDtypes:test_all_floats_of_8_bits()
  local codes = {}
  for i = 0, 255 do
    codes[i + 1] = string.char(i)
  end
  for dtype, t in pairs(EIGHT) do
    local x = dc.frombytes(table.concat(codes), dtype .. "[256]")
    for _, wide in ipairs { "f16", "bf16", "f32", "f64" } do
      local f = dc.fn(("f(v: %s[256]) -> %s[256]"):format(dtype, wide), function(v) return v:cast(wide) end)
      for _, y in ipairs { x:cast(wide), f(x) } do
        local got = y:cast "f64":totable()
        for i = 0, 255 do
          local want = number_of(t, i)
          lu.assertTrue(want ~= want and got[i + 1] ~= got[i + 1] or bits_of(want) == bits_of(got[i + 1]), i)
        end
        local back = y:cast(dtype)
        lu.assertTrue((back:eq(x) | x:ne(x) & back:ne(back)):all():item())
      end
    end
  end
end

-- Every f16, and f32 and f64 at and beside the middle of two neighbours: rounded once.
function TestDtypes:test_floats_are_rounded_to_8_bits()
  local halves = dc.iota("i32[65536]"):cast("u16"):half_float():cast("f16")
  for dtype, t in pairs(EIGHT) do
    local near = { 0.0, -0.0, 1e-30, -1e-300, 1e30, -1e300, math.huge, -math.huge, 0 / 0 }
    for code = 0, t.most do
      local a = number_of(t, code)
      local b = code < t.most and number_of(t, code + 1) or 2 * a - number_of(t, code - 1)
      for _, v in ipairs { (a + b) / 2, b } do
        local bits = bits_of(v)
        for _, beside in ipairs { 0, 1, -1, 1 << 29, -(1 << 29) } do
          local w = string.unpack("<d", string.pack("<i8", bits + beside))
          near[#near + 1], near[#near + 2] = w, -w
        end
      end
    end
    for _, x in ipairs { halves, dc.tensor(near, "f64"), dc.tensor(near, "f64"):cast "f32" } do
      local values = x:cast "f64":totable()
      for _, saturates in ipairs { false, true } do
        local function cast(v) return v:cast(dtype, { saturate = saturates }) end
        local f = dc.fn(("f(v: %s[%d]) -> %s[%d]"):format(x.dtype, #x, dtype, #x), function(v) return cast(v) end)
        check_codes(dtype, x, cast(x), values, saturates)
        check_codes(dtype, x, f(x), values, saturates)
      end
    end
    local whole = { 0, 1, 17, -17, 232, 240, 248, 464, 465, -465, 57344, 61439, 61440, 61441, -70000, 1 << 40 }
    local x = dc.tensor(whole, "i64")
    check_codes(dtype, x, x:cast(dtype), x:cast "f64":totable())
    check_codes(dtype, x, x:cast(dtype, { saturate = true }), x:cast "f64":totable(), true)
  end
  local bytes = dc.tensor({ -128, 127 }, "i8"):cast("f8e4m3fn", { saturate = true })
  lu.assertEquals(bytes:cast "f32":totable(), { -128, 128 })
  lu.assertEquals(dc.tensor({ 70000, -1e9 }, "f32"):cast("f16", { saturate = true }):totable(), { 65504, -65504 })
  check.fails("1000 does not fit f8e4m3fn", dc.full, "f8e4m3fn[]", 1000)
  check.fails("inf does not fit f8e4m3fn", dc.full, "f8e4m3fn[]", 1 / 0)
  check.fails("saturate is for casts to floats", dc.cast, dc.ones "f32[2]", "i8", { saturate = true })
end

-- Sums of products are f32 where that is asked for; the operands are stored in 8 bits.
function TestDtypes:test_products_of_floats_of_8_bits()
  for dtype in pairs(EIGHT) do
    for _, size in ipairs { { 3, 5, 7 }, { 1, 300, 140 }, { 33, 64, 48 }, { 128, 256, 96 } } do
      local m, k, n = table.unpack(size)
      local function digits(rows, columns, seed)
        return ((dc.iota(rows * columns) * (6 + seed)) % 9 - 4):reshape(rows, columns):cast "f32"
      end
      local a, b = digits(m, k, 1), digits(k, n, 2)
      local x, y, want = a:cast(dtype):clone(), b:cast(dtype):clone(), a:matmul(b)
      local sig = ("f(p: %s[%d, %d], q: %s[%d, %d]) -> f32[%d, %d]"):format(dtype, m, k, dtype, k, n, m, n)
      local f = dc.fn(sig, function(p, q) return p:matmul(q, { dtype = "f32" }) end)
      local g = dc.fn(sig, function(p, q) return p:cast "f32":matmul(q:cast "f32") end)
      for _, got in ipairs { f(x, y), g(x, y), x:matmul(y, { dtype = "f32" }) } do
        lu.assertEquals(got.dtype, "f32")
        lu.assertTrue(got:eq(want):all():item())
      end
    end
  end
end

-- Other operations are those of f32, rounded once; what moves elements keeps their bits.
function TestDtypes:test_floats_of_8_bits_are_memory()
  for dtype in pairs(EIGHT) do
    local x = dc.tensor({ 0.5, -1.75, 3, 448, -0.0, 12 }, dtype)
    local y = dc.tensor({ 3, 0.25, -3, 1, 0, 15 }, dtype)
    local sig = ("f(a: %s[6], b: %s[6]) -> %s[6]"):format(dtype, dtype, dtype)
    for _, f in ipairs { function(a, b) return a + b end, function(a, b) return a * b - a end,
      function(a, b) return a:maximum(b) end } do
      local got, want = dc.fn(sig, function(a, b) return f(a, b) end)(x, y), f(x:cast "f32", y:cast "f32"):cast(dtype)
      lu.assertEquals(f(x, y).dtype, dtype)
      lu.assertTrue((got:eq(want) | got:ne(got) & want:ne(want)):all():item())
    end
    lu.assertEquals(x:max():item(), 448)
    lu.assertEquals(dc.concat({ x, y }, 1):reshape(2, 6):transpose():take(dc.tensor({ 3, 0 }, "i32"), 1):totable(),
      { { 448, 1 }, { 0.5, 3 } })
    lu.assertEquals(dc.where(x:lt(y), x, y):totable(), { 0.5, -1.75, -3, 1, -0.0, 12 })
    lu.assertEquals(x:sort():totable()[1], -1.75)
    lu.assertEquals(dc.linspace(0, 1, 5, dtype):totable(), { 0, 0.25, 0.5, 0.75, 1 })
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
