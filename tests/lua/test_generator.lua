-- Random numbers: which ones, and when the generator advances.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"

local fails = check.fails

-- Mean and variance, as numbers.
local function moments(x)
  local m = x:mean():item()
  return m, ((x - m) ^ 2):mean():item()
end

TestNumbers = {}

function TestNumbers:test_a_seed_always_gives_the_same()
  local a = dc.rand("f32[6]", { seed = 1 }):totable()
  lu.assertEquals(dc.rand("f32[6]", { seed = 1 }):totable(), a)
  lu.assertNotEquals(dc.rand("f32[6]", { seed = 2 }):totable(), a)
  lu.assertEquals(dc.rand("f32[2, 3]", { seed = 1 }):reshape("[6]"):totable(), a)
  lu.assertEquals(("%.9g %.9g"):format(a[1], a[6]), "0.719724119 0.0987982154")
  local z = dc.randn("f32[6]", { seed = 1 })
  lu.assertEquals(("%.9g"):format(z[6]:item()), ("%.9g"):format(dc.randn("f32[6]", { seed = 1 })[6]:item()))
end

-- The same numbers to the last bit as interpreted operations, as a compiled kernel and inside a typed function.
function TestNumbers:test_small_and_large_and_traced_are_the_same()
  local large = {
    dc.rand("f32[2000]", { seed = 3 }),
    dc.rand("f32[2000]", { seed = 3, low = -0.3, high = 0.7 }),
    dc.randn("f32[2000]", { seed = 3 }),
    dc.randn("f32[2000]", { seed = 3, mean = 0.3, std = 0.7 }),
    dc.randint("i32[2000]", { seed = 3, low = -5, high = 1000 }),
  }
  local small = {
    dc.rand("f32[8]", { seed = 3 }),
    dc.rand("f32[8]", { seed = 3, low = -0.3, high = 0.7 }),
    dc.randn("f32[8]", { seed = 3 }),
    dc.randn("f32[8]", { seed = 3, mean = 0.3, std = 0.7 }),
    dc.randint("i32[8]", { seed = 3, low = -5, high = 1000 }),
  }
  local traced = {
    dc.fn("f() -> f32[2000]", function() return dc.rand("f32[2000]", { seed = 3 }) end)(),
    dc.fn("f() -> f32[2000]", function() return dc.rand("f32[2000]", { seed = 3, low = -0.3, high = 0.7 }) end)(),
    dc.fn("f() -> f32[2000]", function() return dc.randn("f32[2000]", { seed = 3 }) end)(),
    dc.fn("f() -> f32[2000]", function() return dc.randn("f32[2000]", { seed = 3, mean = 0.3, std = 0.7 }) end)(),
    dc.fn("f() -> i32[2000]", function() return dc.randint("i32[2000]", { seed = 3, low = -5, high = 1000 }) end)(),
  }
  for i = 1, #large do
    local all = large[i]:totable()
    lu.assertEquals(small[i]:totable(), table.move(all, 1, 8, 1, {}))
    lu.assertEquals(traced[i]:totable(), all)
  end
end

function TestNumbers:test_every_float_type()
  for _, t in ipairs { "f64", "f16", "bf16" } do
    for _, options in ipairs { { seed = 4 }, { seed = 4, mean = 0.3, std = 0.7 } } do
      local all = dc.randn(t .. "[2000]", options):totable()
      lu.assertEquals(dc.randn(t .. "[8]", options):totable(), table.move(all, 1, 8, 1, {}))
    end
    local u = dc.rand(t .. "[2000]", { seed = 4 })
    lu.assertEquals(dc.rand(t .. "[8]", { seed = 4 }):totable(), table.move(u:totable(), 1, 8, 1, {}))
    lu.assertTrue(u:min():item() >= 0 and u:max():item() < 1)
    lu.assertAlmostEquals(u:cast("f32"):mean():item(), 0.5, 0.03)
  end
end

function TestNumbers:test_uniform()
  local x = dc.rand("f32[20000]", { seed = 7 })
  local mean, var = moments(x)
  lu.assertAlmostEquals(mean, 0.5, 0.01)
  lu.assertAlmostEquals(var, 1 / 12, 0.002)
  lu.assertTrue(x:min():item() >= 0 and x:max():item() < 1)
  local y = dc.rand("f32[5000]", { seed = 7, low = -2, high = 3 })
  lu.assertTrue(y:min():item() >= -2 and y:max():item() < 3)
  lu.assertAlmostEquals(moments(y), 0.5, 0.06)
  local edge = dc.rand("f32[5000]", { seed = 7, low = 1, high = 1 + 2 ^ -23 })
  lu.assertEquals(edge:max():item(), 1) -- never high, however it is rounded
  lu.assertEquals(dc.rand("f32[3]", { low = 2, high = 2 }):totable(), { 2, 2, 2 })
  fails("low is 2, more than high, 1", dc.rand, "f32[3]", { low = 2, high = 1 })
end

function TestNumbers:test_normal()
  local z = dc.randn("f32[20000]", { seed = 7 })
  local mean, var = moments(z)
  lu.assertAlmostEquals(mean, 0, 0.03)
  lu.assertAlmostEquals(var, 1, 0.04)
  lu.assertAlmostEquals((z ^ 4):mean():item(), 3, 0.25)
  lu.assertAlmostEquals(z:abs():lt(1):cast("f32"):mean():item(), 0.6827, 0.015)
  lu.assertTrue(z:max():item() > 3 and z:min():item() < -3)
  mean, var = moments(dc.randn("f32[20000]", { seed = 7, mean = 5, std = 2 }))
  lu.assertAlmostEquals(mean, 5, 0.06)
  lu.assertAlmostEquals(var, 4, 0.16)
  fails("std is -1, less than 0", dc.randn, "f32[3]", { std = -1 })
end

function TestNumbers:test_whole_numbers()
  local x = dc.randint("i32[20000]", { seed = 7, low = -3, high = 4 })
  lu.assertEquals({ x:min():item(), x:max():item() }, { -3, 3 })
  for k = -3, 3 do
    lu.assertAlmostEquals(x:eq(k):cast("f32"):mean():item(), 1 / 7, 0.01)
  end
  lu.assertEquals(dc.randint("u8[4]", { low = 200, high = 201 }):totable(), { 200, 200, 200, 200 })
  fails("nothing is between low, 0, and high, 0", dc.randint, "i32[3]")
  fails("[DC0203", dc.randint, "u8[3]", { high = 1000 })
  fails("an integer is needed", dc.randint, "f32[3]", { high = 10 })
  fails("a float is needed", dc.rand, "i32[3]")
end

function TestNumbers:test_bernoulli()
  local x = dc.bernoulli("bool[20000]", { seed = 7, p = 0.2 })
  lu.assertAlmostEquals(x:cast("f32"):mean():item(), 0.2, 0.012)
  lu.assertEquals(dc.bernoulli("bool[2]", { p = 1 }):totable(), { true, true })
  lu.assertEquals(dc.bernoulli("bool[2]", { p = 0 }):totable(), { false, false })
  fails("p is 2, a probability is 0 to 1", dc.bernoulli, "bool[3]", { p = 2 })
end

function TestNumbers:test_another_draw_is_no_other_program()
  local _ = dc.randn("f32[40, 40]", { std = 0.02 }):totable()
  local before = dc.stats().lazy_programs
  for i = 1, 5 do
    _ = dc.randn("f32[40, 40]", { std = 0.01 * i + 0.001, seed = i > 3 and i or nil }):totable()
  end
  lu.assertEquals(dc.stats().lazy_programs, before)
end

TestGenerator = {}

function TestGenerator:test_outside_in_the_order_written()
  dc.seed(5)
  local a, b = dc.rand "f32[4]", dc.rand "f32[4]"
  dc.seed(5)
  local c, d = dc.rand "f32[4]", dc.rand "f32[4]"
  lu.assertEquals(d:totable(), b:totable()) -- read in another order
  lu.assertEquals(c:totable(), a:totable())
  lu.assertNotEquals(a:totable(), b:totable())
  lu.assertNotEquals(a:totable(), dc.rand("f32[4]", { seed = 5 }):totable())
  lu.assertEquals(dc.generator()[3]:item(), 2)
end

function TestGenerator:test_inside_each_call_draws_anew_and_each_site_its_own()
  dc.seed(1)
  local f = dc.fn("f() -> f32[4], f32[4]", function() return dc.rand "f32[4]", dc.rand "f32[4]" end)
  lu.assertEquals(dc.generator()[3]:item(), 0) -- tracing draws nothing
  local a, b = f()
  local c, d = f()
  lu.assertEquals(dc.generator()[3]:item(), 2) -- a call advances once
  local seen = {}
  for _, x in ipairs { a, b, c, d, dc.rand "f32[4]" } do
    local text = tostring(x)
    lu.assertNil(seen[text])
    seen[text] = true
  end
  dc.seed(1)
  local a2, b2 = f()
  lu.assertEquals({ a2:totable(), b2:totable() }, { a:totable(), b:totable() })
  local g = dc.fn("g() -> f32[4], f32[4]", function() return dc.rand "f32[4]", dc.rand "f32[4]" end)
  local c2, d2 = g() -- traced later, the same draws
  lu.assertEquals({ c2:totable(), d2:totable() }, { c:totable(), d:totable() })
end

function TestGenerator:test_a_typed_function_inside_another()
  dc.seed(1)
  local inner = dc.fn("inner() -> f32[4]", function() return dc.rand "f32[4]" end)
  local outer = dc.fn("outer() -> f32[4], f32[4]", function() return inner(), inner() end)
  local a, b = outer()
  lu.assertNotEquals(a:totable(), b:totable())
  lu.assertEquals(dc.generator()[3]:item(), 1)
end

function TestGenerator:test_its_state_is_kept_and_set_again()
  dc.seed(9)
  local _ = dc.rand "f32[3]"
  local state = dc.generator():clone()
  local a = dc.randn "f32[4]"
  _ = dc.rand "f32[3]"
  dc.generator():set(state)
  lu.assertEquals(dc.randn("f32[4]"):totable(), a:totable())
  lu.assertStrContains(tostring(dc.generator()), "u32[4]")
  dc.generator():set(dc.tensor({ 1, 2, 4294967295, 0 }, "u32[4]"))
  _ = dc.rand "f32[1]"
  lu.assertEquals(dc.generator():totable(), { 1, 2, 0, 1 })
  dc.generator():set(dc.tensor({ 1, 2, 4294967295, 0 }, "u32[4]"))
  local f = dc.fn("f() -> f32[1]", function() return dc.rand "f32[1]" end)
  f()
  lu.assertEquals(dc.generator():totable(), { 1, 2, 0, 1 })
  dc.seed(0)
end

function TestGenerator:test_seed_inside_is_refused()
  fails("it would act once", dc.fn, "f() -> ()", function() dc.seed(1) end)
end

function TestGenerator:test_a_gradient_goes_round_a_draw()
  local w = dc.param("f32[4]", 1)
  local mask = dc.bernoulli("bool[4]", { seed = 1 }):cast "f32"
  lu.assertEquals(dc.grad((w * mask):sum(), w):totable(), mask:totable())
end
