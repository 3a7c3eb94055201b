-- Element types through typed functions: where 16-bit floats round, what integers of all widths do.

local lu = require "luaunit"
local dc = require "deepc"

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

function TestDtypes:test_sums_of_short_integers_are_i32()
  for _, dtype in ipairs { "bool", "i8", "i16", "u8", "u16" } do
    lu.assertEquals(dc.ones("u8[300]"):cast(dtype):sum().dtype, "i32")
  end
  lu.assertEquals(dc.ones("i64[3]"):sum().dtype, "i64")
end

return TestDtypes
