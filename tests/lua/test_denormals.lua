-- dc.flush_denormals and DEEPC_MATH=ftz: denormal numbers are kept, and flushed where that is asked for.
local lu = require "luaunit"
local dc = require "deepc"

local device = dc.stats().device
local flushes = device:match "^cpu" or device == "eval"

TestDenormals = {}

function TestDenormals:setUp()
  if not flushes then
    lu.skip("no denormal number is flushed at run time here")
  end
  self.before = dc.flush_denormals()
end

function TestDenormals:tearDown()
  if flushes then
    dc.flush_denormals(self.before)
  end
end

function TestDenormals:test_it_tells_whether_it_was_on()
  lu.assertFalse(dc.flush_denormals(true))
  lu.assertTrue(dc.flush_denormals())
  lu.assertTrue(dc.flush_denormals(false))
  lu.assertFalse(dc.flush_denormals())
  lu.assertErrorMsgContains("true or false is needed, not the string 'yes'", dc.flush_denormals, "yes")
end

local mul = dc.fn("mul(x: f32[n], y: f32[n]) -> f32[n]", function(x, y) return x * y end)
local wide = dc.fn("wide(x: f64[n], y: f64[n]) -> f64[n]", function(x, y) return x * y end)

local function first(t)
  return t:totable()[1]
end

local function both(on, n)
  dc.flush_denormals(on)
  local a, b = dc.full(("f32[%d]"):format(n), 1e-20), dc.full(("f32[%d]"):format(n), 1e20)
  local tiny = dc.full(("f32[%d]"):format(n), 1e-40)
  return first(mul(a, a)), first(mul(tiny, b)), first(a * a), first(tiny * b)
end

function TestDenormals:test_results_and_operands()
  for _, n in ipairs { 1, 7, 300000 } do
    local result, operand, lazy_result, lazy_operand = both(false, n)
    lu.assertAlmostEquals(result, 1e-40, 1e-44)
    lu.assertAlmostEquals(operand, 1e-20, 1e-24)
    lu.assertEquals({ lazy_result, lazy_operand }, { result, operand })
    lu.assertEquals({ both(true, n) }, { 0, 0, 0, 0 }, n)
    lu.assertEquals({ both(false, n) }, { result, operand, result, operand })
  end
end

function TestDenormals:test_calls_that_met_some_are_counted()
  local function met(x, y)
    local before = dc.stats().denormals
    first(mul(x, y))
    return dc.stats().denormals - before
  end
  local some = device == "eval" and 0 or 1
  for _, on in ipairs { false, true } do
    dc.flush_denormals(on)
    lu.assertEquals(met(dc.ones "f32[7]", dc.full("f32[7]", 1e-30)), 0)
    lu.assertEquals(met(dc.full("f32[7]", 1e-20), dc.full("f32[7]", 1e-20)), some)
    lu.assertEquals(met(dc.ones "f32[7]", dc.ones "f32[7]"), 0)
  end
end

function TestDenormals:test_f64()
  local a = dc.full("f64[8]", 1e-160)
  lu.assertTrue(first(wide(a, a)) > 0)
  dc.flush_denormals(true)
  lu.assertEquals(first(wide(a, a)), 0.0)
end

-- Those of f16 are ordinary numbers of f32, in which it computes.
function TestDenormals:test_f16_keeps_its_own()
  dc.flush_denormals(true)
  local small = dc.full("f16[40]", 3e-6)
  local half = dc.fn("half(x: f16[40]) -> f16[40]", function(x) return x * 0.5 end)
  lu.assertAlmostEquals(first(half(small)), 1.5e-6, 1e-7)
  lu.assertAlmostEquals(first(small:cast "f32"), 3e-6, 1e-7)
end

function TestDenormals:test_lua_computes_as_before()
  dc.flush_denormals(true)
  first(mul(dc.ones "f32[300000]", dc.ones "f32[300000]"))
  local tiny = 2.0 ^ -1030
  lu.assertTrue(tiny * 0.5 > 0)
  pcall(mul, dc.ones "f32[3]", dc.ones "f32[4]")
  lu.assertTrue(tiny * 0.5 > 0)
end

-- What the setting does where it is decided when the context is made.
function TestDenormals:test_the_setting()
  local name = os.tmpname()
  local file = assert(io.open(name, "w"))
  file:write [[
local dc = require "deepc"
local f = dc.fn("f(x: f32[5]) -> f32[5]", function(x) return x * x end)
print(dc.flush_denormals(), f(dc.full("f32[5]", 1e-20)):totable()[1] == 0)]]
  file:close()
  for setting, told in pairs { [""] = "false\tfalse\n", ftz = "true\ttrue\n", ["strict,ftz"] = "true\ttrue\n",
                               ["ftz,tf32"] = "true\ttrue\n" } do
    local out = io.popen(("DEEPC_MATH=%s %s %s 2>&1"):format(setting, arg[-1], name))
    lu.assertEquals(out:read "a", told, setting)
    out:close()
  end
  os.remove(name)
end
