-- Functions of numbers and reductions without NaN beside what tests/peers compares: 16-bit floats, names,
-- bounded sizes, sizes 0, vmap, errors.
local lu = require "luaunit"
local dc = require "deepc"
local raises = require("tests.lua.check").raises

local nan, inf = 0 / 0, 1 / 0

TestNumbers = {}

local of_one = "sinc logit frac deg2rad rad2deg nan_to_num"
local of_two = "hypot logaddexp logaddexp2 xlogy heaviside atan2 copysign isclose"

function TestNumbers:test_short_floats_round_once()
  for _, dtype in ipairs { "f16", "bf16" } do
    local x, y = dc.tensor({ 0.1, 0.3, 0.7 }, dtype), dc.tensor({ 0.9, 0.2, 0.5 }, dtype)
    for name in (of_one .. " " .. of_two):gmatch "%S+" do
      local want = dc[name](x:cast "f32", of_two:find(name, 1, true) and y:cast "f32" or nil)
      local got = dc[name](x, of_two:find(name, 1, true) and y or nil)
      local same = want.dtype == "bool" and want or want:cast(dtype)
      lu.assertEquals(got.dtype, same.dtype, name)
      lu.assertEquals(got:totable(), same:totable(), name .. " of " .. dtype)
    end
    lu.assertEquals(dc.lerp(x, y, 1):totable(), y:totable())
  end
end

function TestNumbers:test_names_and_empty_axes()
  local x = dc.ones "f32[n=2, m=0]"
  for name in (of_one .. " " .. of_two):gmatch "%S+" do
    local y = dc[name](x, of_two:find(name, 1, true) and x or nil)
    lu.assertEquals(y:size "n", 2, name)
    lu.assertEquals(y:size "m", 0, name)
  end
  lu.assertEquals(x:nansum("m"):totable(), { 0, 0 })
  lu.assertEquals(x:count_nonzero("m"):totable(), { 0, 0 })
  lu.assertTrue(x:nanmax("m")[1]:isnan():item())
  lu.assertEquals(dc.ones("f32[n=2, m=3]"):nanvar("m"):size "n", 2)
end

function TestNumbers:test_sizes_known_at_run_time()
  local f = dc.fn("f(x: f32[t <= 8]) -> f32[], f32[], f32[], i32[]", function(x)
    return x:nanmean(), x:nanmax(), x:nanvar(), x:count_nonzero()
  end)
  for _, values in ipairs { { 1, nan, 3 }, { 2, 0, nan, 4, 6 } } do
    local x = dc.tensor(values)
    local a, b, c, d = f(x)
    lu.assertEquals({ a:item(), b:item(), c:item(), d:item() },
      { x:nanmean():item(), x:nanmax():item(), x:nanvar():item(), x:count_nonzero():item() })
  end
end

function TestNumbers:test_rows_by_vmap()
  local x, y = dc.rand("f32[3, 4]", { seed = 1 }), dc.rand("f32[3, 4]", { seed = 2 })
  for name in of_two:gmatch "%S+" do
    lu.assertEquals(dc.vmap(dc[name])(x, y):totable(), dc[name](x, y):totable(), name)
  end
  lu.assertEquals(dc.vmap(function(r) return r:nanstd() end)(x):totable(), x:nanstd(2):totable())
end

function TestNumbers:test_integers()
  lu.assertEquals(dc.tensor({ 1, 0, 3 }, "i32"):logical_and(1):totable(), { true, false, true })
  lu.assertEquals(dc.tensor({ 1, 2 }, "i64"):nan_to_num():totable(), { 1, 2 })
  lu.assertEquals(dc.tensor({ 3, 5 }, "i32"):isclose(dc.tensor({ 3, 6 }, "i32")):totable(), { true, false })
  lu.assertEquals(dc.tensor({ 2, 3 }, "i32"):nanmean():item(), 2.5)
  lu.assertEquals(dc.tensor({ 0, -1 }, "i64"):popcount():totable(), { 0, 64 })
  lu.assertEquals(dc.tensor({ 0, 1 }, "i64"):clz():totable(), { 64, 63 })
  lu.assertEquals(dc.tensor({ 180 }, "i32"):deg2rad().dtype, "f32")
end

-- The loop goes on until the slowest element is there; the largest magnitudes; no elements; options of size 1.
function TestNumbers:test_common_divisors()
  local least, most = math.mininteger, math.maxinteger
  local a, b = dc.tensor({ least, least, most, 2 ^ 62 | 0 }, "i64"), dc.tensor({ 0, 6, most - 1, 3 << 40 }, "i64")
  lu.assertEquals(a:gcd(b):totable(), { least, 2, 1, 1 << 40 })
  lu.assertEquals(dc.tensor({ -128, 100 }, "i8"):gcd(-128):totable(), { -128, 4 })
  lu.assertEquals(dc.zeros("i32[0]"):gcd(3):totable(), {})
  lu.assertEquals(dc.tensor(12, "i32[]"):lcm(18):item(), 36)
  local f = dc.fn("f(x: i32[n <= 8], y: i32[]) -> i32[n]", function(x, y) return x:gcd(y) end)
  lu.assertEquals(f(dc.tensor({ 6, 9, 10 }, "i32"), 12):totable(), { 6, 3, 2 })
  raises("gcd: a is f32[1], integers are needed", "DC0202", dc.gcd, dc.ones "f32[1]", 2)
  raises("lcm: b is bool[1], integers are needed", "DC0202", dc.lcm, dc.ones "i32[1]", dc.ones "bool[1]")
  raises("gcd: a: a tensor is needed, not the number 4", "DC0101", dc.gcd, 4, 6)
end

function TestNumbers:test_powers_of_nan()
  lu.assertEquals(dc.tensor({ nan, 1 }):pow(dc.tensor { 0, nan }):totable(), { 1, 1 })
  lu.assertEquals(dc.tensor({ inf, -inf }):logaddexp(dc.tensor { inf, -inf }):totable(), { inf, -inf })
end

-- Where terms cancel: next to integers, whose sine is 0; a sum of powers that is 1, whose product no sum contracts.
function TestNumbers:test_near_zeros()
  local f = dc.fn("f(x: f32[n], y: f32[n]) -> f32[n], f32[n]", function(x, y)
    return x:sinc(), y:logaddexp2(y)
  end)
  local x = dc.tensor { 1 - 2.0 ^ -24, 1 + 2.0 ^ -23, 3 + 2.0 ^ -22, 1000, -2.5 }
  local y = dc.tensor { -1, 0, 3, -inf, inf }
  local want = { 2.0 ^ -24, -2.0 ^ -23, -2.0 ^ -22 / 3, 0, 2 / (5 * math.pi) }
  for _, device in ipairs { "cpu", "eval" } do
    local a, b = f(x:to(device), y:to(device))
    for i, v in ipairs(a:totable()) do lu.assertAlmostEquals(v, want[i], 3e-7 * math.abs(want[i])) end
    lu.assertEquals(b:totable(), { 0, 1, 4, -inf, inf }, device)
  end
end

-- A fraction below 0 becomes the integer 0, which has no sign: not what trunc gives.
function TestNumbers:test_integers_have_no_zero_below_zero()
  local values = dc.tensor { -0.3, 0.3, -0.0, 1.5, -0.9 }
  for dtype in ("i8 i16 i32 i64"):gmatch "%S+" do
    for float in ("f32 f64 f16 bf16"):gmatch "%S+" do
      local f = dc.fn(("f(x: %s[5]) -> %s[5]"):format(float, float), function(x)
        return 1 / x:cast(dtype):cast(float)
      end)
      lu.assertEquals(f(values:cast(float)):totable(), { inf, inf, inf, 1, inf }, dtype .. " of " .. float)
    end
  end
end

function TestNumbers:test_errors()
  raises("popcount: bool[1]: an integer is needed", "DC0202", dc.popcount, dc.ones "bool[1]")
  raises("lgamma: i32[1]: a float is needed", "DC0202", dc.lgamma, dc.ones "i32[1]")
  raises("hypot: dtypes differ: f32[1] and f64[1]", "DC0201", dc.hypot, dc.ones "f32[1]", dc.ones "f64[1]")
  raises("isclose: rtol and atol are not negative", "DC0101", dc.isclose, dc.ones "f32[1]", 1, { rtol = -1 })
  raises("nansum: axis 3 of f32[2]: axes are 1 to 1, -1 is the last, or a name", "DC0103", dc.nansum,
    dc.ones "f32[2]", 3)
end
