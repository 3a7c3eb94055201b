-- x:bitcast: every pattern of 8 and 16 bits and edges of 32 and 64, in typed functions, outside of them and folded
-- where they are known; between arithmetic; what is refused.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"

TestBitcast = {}

local fails = check.fails
local WIDE = {
  [1] = { "i8", "u8", "f8e4m3fn", "f8e5m2" },
  [2] = { "i16", "u16", "f16", "bf16" },
  [4] = { "i32", "u32", "f32" },
  [8] = { "i64", "u64", "f64" },
}

-- All patterns of 8 and 16 bits; of 32 and 64 those beside the ends of exponents, with NaN of both kinds and payloads.
local function patterns(size)
  local at = {}
  if size <= 2 then
    for i = 0, (1 << 8 * size) - 1 do
      at[#at + 1] = string.pack("<I" .. size, i)
    end
    return table.concat(at)
  end
  local fraction = size == 4 and 23 or 52
  local most = size == 4 and 255 or 2047
  local sign, quiet = 1 << 8 * size - 1, 1 << fraction - 1
  for _, exponent in ipairs { 0, 1, 2, most // 2, most // 2 + 31, most - 1, most } do
    for _, rest in ipairs { 0, 1, 2, quiet - 1, quiet, quiet + 5, 2 * quiet - 1 } do
      local bits = exponent << fraction | rest
      at[#at + 1] = string.pack("<i8", bits):sub(1, size)
      at[#at + 1] = string.pack("<i8", bits | sign):sub(1, size)
    end
  end
  return table.concat(at)
end

local function run(sig, body, ...)
  return dc.fn(sig, body)(...)
end

-- Bytes beside bytes: failures name the first place.
local function same(got, want, size, what)
  if got ~= want then
    for at = 1, #want, size do
      local a, b = got:sub(at, at + size - 1), want:sub(at, at + size - 1)
      if a ~= b then
        lu.fail(("%s: element %d is %x, not %x"):format(what, at // size, string.unpack("<I" .. size, a),
          string.unpack("<I" .. size, b)))
      end
    end
  end
  lu.assertEquals(#got, #want, what)
end

function TestBitcast:test_all_patterns()
  for size, dtypes in pairs(WIDE) do
    local bytes = patterns(size)
    local n = #bytes // size
    for _, from in ipairs(dtypes) do
      local x = dc.frombytes(bytes, ("%s[%d]"):format(from, n))
      for _, to in ipairs(dtypes) do
        local what = from .. " as " .. to
        local y = x:bitcast(to)
        lu.assertEquals({ y.dtype, #y }, { to, n }, what)
        same(y:bytes(), bytes, size, what)
        same(dc.bitcast(x, to):bitcast(from):bytes(), bytes, size, what .. " and back")
        local sig = ("f(v: %s[n]) -> %s[n]"):format(from, to)
        same(run(sig, function(v) return v:bitcast(to) end, x):bytes(), bytes, size, what .. " in a function")
        local turned = run(sig, function(v) return v:flip(1):bitcast(to):flip(1) end, x)
        same(turned:bytes(), bytes, size, what .. " among movement")
        local there, back = run(("f(v: %s[n]) -> %s[n], %s[n]"):format(from, to, from), function(v)
          local w = v:bitcast(to)
          return w, w:bitcast(from)
        end, x)
        same(there:bytes(), bytes, size, what .. " beside itself")
        same(back:bytes(), bytes, size, what .. " and back in a function")
      end
    end
  end
end

-- A known pattern is folded where the graph is simplified, and so is a number that fills a tensor.
function TestBitcast:test_of_what_is_known()
  for _, row in ipairs {
    { "f32", 1, "u32", 0x3f800000 }, { "f32", -0.0, "i32", -1 << 31 }, { "f64", -2, "i64", -1 << 62 },
    { "f16", 1, "u16", 0x3c00 }, { "bf16", -1, "i16", 0xbf80 - 65536 }, { "f8e4m3fn", 1.5, "u8", 0x3c },
    { "i8", -1, "u8", 255 }, { "u32", 0x7f800001, "i32", 0x7f800001 }, { "f8e5m2", -2, "i8", -64 },
  } do
    local from, value, to, want = table.unpack(row)
    local sig = ("f(x: %s[3]) -> %s[3]"):format(to, to)
    local got = run(sig, function(x) return x + dc.full(from .. "[3]", value):bitcast(to) end, dc.zeros(to .. "[3]"))
    lu.assertEquals(got:totable(), { want, want, want }, from)
    lu.assertEquals(dc.full(from .. "[]", value):bitcast(to):item(), want, from)
  end
  local nan = run("f(x: u32[2]) -> u32[2]", function(x)
    local pattern = dc.full("u32[2]", 0xff800001):bitcast "f32"
    return dc.where(x:eq(0), pattern, dc.zeros "f32[2]"):bitcast "u32"
  end, dc.tensor({ 0, 1 }, "u32"))
  lu.assertEquals(nan:totable(), { 0xff800001, 0 })
end

-- Between arithmetic on both sides, in one kernel.
function TestBitcast:test_between_arithmetic()
  local words = {}
  for i = 1, 1000 do
    words[i] = i * 2654435761 & 0xffffffff
  end
  local x = dc.tensor(words, "u32")
  local function uniform(v) return (v >> 9 | 0x3f800000):bitcast "f32" - 1 end
  local want = {}
  for i, w in ipairs(words) do
    want[i] = string.unpack("<f", string.pack("<I4", w >> 9 | 0x3f800000)) - 1
  end
  lu.assertEquals(uniform(x):totable(), want)
  lu.assertEquals(run("f(v: u32[n]) -> f32[n]", uniform, x):totable(), want)
  -- exponents: numbers times powers of two
  local function scaled(v) return (((v * 2):bitcast "i32" + (3 << 23)):bitcast "f32" * 0.5):bitcast "i32" end
  local y = uniform(x) + 1
  for i, v in ipairs(y:totable()) do
    want[i] = string.unpack("<i4", string.pack("<f", v * 8))
  end
  lu.assertEquals(scaled(y):totable(), want)
  lu.assertEquals(run("f(v: f32[n]) -> i32[n]", scaled, y):totable(), want)
end

-- Short floats that were computed are rounded, once, before their pattern is taken.
function TestBitcast:test_short_floats_that_are_computed()
  for dtype, word in pairs { f16 = "u16", bf16 = "i16", f8e5m2 = "u8", f8e4m3fn = "i8" } do
    local size = dtype:sub(1, 2) == "f8" and 1 or 2
    local x = dc.linspace(-3, 3, 601):cast(dtype)
    local rounded = (x:cast "f32" * x:cast "f32"):cast(dtype)
    rounded = (rounded:cast "f32" + x:cast "f32"):cast(dtype)
    local want = dc.frombytes(rounded:bytes(), ("%s[601]"):format(word)) + 1
    local sig = ("f(v: %s[n]) -> %s[n]"):format(dtype, word)
    local got = run(sig, function(v)
      local square = (v * v):bitcast(word):bitcast(dtype)
      return (square + v):bitcast(word) + 1
    end, x)
    same(got:bytes(), want:bytes(), size, dtype)
    -- the float of a pattern, computed with
    local function back(v) return (v ~ 1):bitcast(dtype):cast "f32" * 2 end
    local codes = dc.frombytes(x:bytes(), ("%s[601]"):format(word))
    local plain = dc.frombytes((codes ~ 1):bytes(), ("%s[601]"):format(dtype)):cast "f32" * 2
    lu.assertEquals(back(codes):bytes(), plain:bytes(), dtype)
    local f = dc.fn(("f(v: %s[n]) -> f32[n]"):format(word), back)
    lu.assertEquals(f(codes):bytes(), plain:bytes(), dtype)
  end
end

function TestBitcast:test_shapes_and_names()
  local x = dc.ones "f32[row=2, 3]"
  local y = x:bitcast "i32"
  lu.assertEquals({ y:size "row", y:size(2), y.dtype }, { 2, 3, "i32" })
  lu.assertEquals(dc.zeros("f64[0, 4]"):bitcast("u64"):size(2), 4)
  lu.assertEquals(dc.ones("f32[]"):bitcast("i32"):item(), 0x3f800000)
  lu.assertEquals(x:bitcast("f32"):totable(), x:totable())
  local sums = run("f(v: f32[n, m]) -> i32[n]", function(v) return v:bitcast("i32"):max(2) end,
    dc.tensor { { 1, 2, 3 }, { -1, 0.5, 0 } })
  lu.assertEquals(sums:totable(), { 0x40400000, 0x3f000000 })
end

-- What is behind a pattern has no part in the gradient.
function TestBitcast:test_no_gradient()
  local g = run("f(x: f32[3]) -> f32[3]", function(x)
    return dc.grad((x * x:bitcast("i32"):bitcast "f32" + x:bitcast("u32"):cast "f32"):sum(), x)
  end, dc.tensor { 1, -2, 0.5 })
  lu.assertEquals(g:totable(), { 1, -2, 0.5 })
  local as_it_is = run("f(x: f32[2]) -> f32[2]", function(x)
    return dc.grad((x * x:bitcast "f32"):sum(), x)
  end, dc.tensor { 3, -4 })
  lu.assertEquals(as_it_is:totable(), { 3, -4 })
end

function TestBitcast:test_refused()
  local x = dc.ones "f32[2]"
  fails("bitcast: elements of f32[2] have 32 bits, those of i16 16", x.bitcast, x, "i16")
  fails("as wide: i32, u32, f32; :cast \"i16\" converts", x.bitcast, x, "i16")
  fails("bitcast: elements of u8[2] have 8 bits, those of bool 1", dc.bitcast, dc.ones "u8[2]", "bool")
  fails("bitcast: bool[2]: a number is needed", dc.bitcast, dc.ones "bool[2]", "u8")
  fails("bitcast: an element of c64 is two numbers", dc.bitcast, dc.ones "f64[2]", "c64")
  fails("bitcast: c64[2]: a real number is needed", dc.bitcast, dc.ones "c64[2]", "f64")
  fails("bitcast: a dtype such as \"f32\" is needed, not the string 'float'", x.bitcast, x, "float")
  fails("x:bitcast \"f32\"", x.bitcast, x, "float")
  fails("bitcast: a tensor is needed, not the number 1", dc.bitcast, 1, "f32")
  fails("bitcast: elements of f64[n=2] have 64 bits, those of u32 32", dc.fn("f(v: f64[n]) -> u32[n]", function(v)
    return v:bitcast "u32"
  end), dc.ones "f64[2]")
end
