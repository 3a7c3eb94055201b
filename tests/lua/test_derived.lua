-- Derived values: what parameters, states, captured tensors and constants decide is kept from call to call,
-- and follows every change of them at once.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local skip = os.getenv "DEEPC_SKIP" or ""
local on_eval = (os.getenv "DEEPC_DEVICE" or "cpu") == "eval"
local off = on_eval or skip:find "prologue" or skip:find "all"

TestDerived = {}

function TestDerived:setUp()
  lu.skipIf(off, "nothing is kept here")
end

-- How often derived values are computed while body runs.
local function prologues(body)
  local before = dc.stats().prologues
  body()
  return dc.stats().prologues - before
end

local function derived(f, n)
  return f:info()[n or 1].derived
end

-- f(x) = x * 1/sqrt(sum of squares of each column of w)
local function scaled(w)
  return dc.fn("scaled(x: f32[8]) -> f32[8]", function(x) return x * w:square():sum(1):rsqrt() end)
end

local function first(f)
  return f(dc.ones "f32[8]")[1]:item()
end

-- ---- what is kept ----

function TestDerived:test_a_function_of_parameters_is_computed_once()
  local w = dc.param("f32[16, 8]", dc.ones "f32[16, 8]")
  local f = scaled(w)
  lu.assertEquals(prologues(function()
    for _ = 1, 5 do lu.assertEquals(first(f), 0.25) end
  end), 1)
  lu.assertEquals(derived(f), 1)
  lu.assertEquals(f:info()[1].derived_bytes, 64)
  lu.assertStrContains(f:explain(), "derived       1 value, 64 bytes, kept from call to call")
  lu.assertStrContains(f:plan(), "<- x, derived 1")
end

function TestDerived:test_a_steady_call_launches_the_body_alone()
  local f = scaled(dc.param("f32[16, 8]", dc.ones "f32[16, 8]"))
  local x = dc.ones("f32[8]"):clone()
  f(x)
  f(x)
  collectgarbage()
  local before = dc.stats()
  for _ = 1, 4 do
    f(x)
    collectgarbage()
  end
  local after = dc.stats()
  lu.assertEquals(f:info()[1].launches, 1)
  lu.assertEquals(after.launches - before.launches, 4)
  lu.assertEquals(after.allocs, before.allocs)
end

function TestDerived:test_layouts_of_kernels()
  local a, b = nn.Conv2d(3, 8, 3, { padding = 1 }), nn.Conv2d(8, 8, 3, { padding = 1 })
  local net = nn.Sequential { a, nn.BatchNorm2d(8), nn.ReLU(), b }
  net:eval()
  local f = dc.fn("f(x: f32[1, 3, 6, 6]) -> f32[1, 8, 6, 6]", function(x) return net(x) end)
  f(dc.ones "f32[1, 3, 6, 6]")
  lu.assertEquals(derived(f), 3) -- both kernels, the scale of the norm
  lu.assertEquals(f:info()[1].derived_bytes, 896 + 64 + 2304) -- each in multiples of 64
end

function TestDerived:test_captured_tensors_do_not_change()
  local points = dc.rand("f32[32, 8]", { seed = 1 }):clone()
  local f = dc.fn("near(x: f32[8]) -> f32[32]", function(x)
    return points:square():sum(2) - points:matmul(x) * 2
  end)
  lu.assertEquals(prologues(function()
    f(dc.ones "f32[8]")
    f(dc.zeros "f32[8]")
  end), 1)
  check.close(f(dc.zeros "f32[8]"):totable(), points:square():sum(2):totable(), 1e-5)
end

function TestDerived:test_tables_of_constants()
  local f = dc.fn("turn(x: f32[4, 64]) -> f32[4, 64]", function(x)
    return x * (dc.iota(64):cast "f32" * 0.1):cos()
  end)
  lu.assertEquals(prologues(function()
    f(dc.ones "f32[4, 64]")
    f(dc.ones "f32[4, 64]")
  end), 1)
end

function TestDerived:test_a_result_of_parameters_alone()
  local w = dc.param("f32[16, 8]", dc.ones "f32[16, 8]")
  local f = dc.fn("norms() -> f32[8]", function() return w:square():sum(1) end)
  local held = f()
  lu.assertEquals(prologues(function() lu.assertEquals(f()[1]:item(), 16.0) end), 0)
  w:set(dc.zeros "f32[16, 8]")
  lu.assertEquals(f()[1]:item(), 0.0)
  lu.assertEquals(held[1]:item(), 16.0)
end

-- ---- what is not ----

function TestDerived:test_cheap_and_large_values_are_not_kept()
  local w = dc.param("f32[64]", dc.ones "f32[64]")
  local half = dc.param("f16[32, 64]", dc.ones "f16[32, 64]")
  local cases = {
    dc.fn("f(x: f32[8, 64]) -> f32[8, 64]", function(x) return x * w + (w + 1) end),
    dc.fn("f(x: f32[32, 64]) -> f32[32, 64]", function(x) return x * half:cast "f32" end),
    dc.fn("f(x: f32[4096, 64]) -> f32[4096, 64]", function(x) return x + w:expand(4096, 64) * 2 end),
    dc.fn("f(x: f32[8, 64]) -> f32[8, 64]", function(x) return x + x:exp() end),
  }
  for i, f in ipairs(cases) do
    lu.assertEquals(derived(f), 0, i)
    lu.assertNotStrContains(f:explain(), "     derived ")
  end
end

function TestDerived:test_a_cell_that_the_function_sets_varies()
  local w = dc.param("f32[16, 8]", dc.ones "f32[16, 8]")
  local f = dc.fn("f(x: f32[8]) -> f32[8]", function(x)
    local y = x * w:square():sum(1):rsqrt()
    w:set(w * 2)
    return y
  end)
  lu.assertEquals(first(f), 0.25)
  lu.assertEquals(first(f), 0.125)
  lu.assertEquals(derived(f), 0)
end

function TestDerived:test_code_outside_typed_functions_keeps_nothing()
  local w = dc.rand("f32[300, 40]"):clone()
  lu.assertEquals(prologues(function() (w:square():sum(1):rsqrt() * dc.iota(40):cast "f32":cos()):totable() end), 0)
end

-- ---- changes ----

function TestDerived:test_set_is_seen()
  local w = dc.param("f32[16, 8]", dc.ones "f32[16, 8]")
  local f = scaled(w)
  lu.assertEquals(first(f), 0.25)
  w:set(dc.full("f32[16, 8]", 2))
  lu.assertEquals(first(f), 0.125)
  w:set(w * 2)
  lu.assertEquals(first(f), 0.0625)
  lu.assertEquals(prologues(function() first(f) end), 0)
end

function TestDerived:test_a_training_step_is_seen()
  local net = nn.Linear(8, 8)
  local opt = optim.SGD(net:parameters(), { lr = 0.5 })
  local step = dc.fn("step(x: f32[4, 8]) -> f32[]", function(x)
    local loss = net(x):square():mean()
    opt:step(loss)
    return loss
  end)
  local norms = dc.fn("norms(x: f32[8]) -> f32[8]", function(x) return x * net.weight:square():sum(1):sqrt() end)
  local one = dc.ones "f32[8]"
  for _ = 1, 4 do
    lu.assertEquals(prologues(function()
      check.close(norms(one):totable(), net.weight:square():sum(1):sqrt():totable(), 1e-6)
      norms(one)
    end), 1)
    step(dc.ones "f32[4, 8]")
  end
end

function TestDerived:test_two_specialisations_of_two_functions_see_it()
  local w = dc.param("f32[16, 8]", dc.ones "f32[16, 8]")
  local f = dc.fn("f(x: f32[N, 8]) -> f32[N, 8]", function(x) return x * w:square():sum(1):rsqrt() end)
  local g = scaled(w)
  local function all()
    return { f(dc.ones "f32[1, 8]"):max():item(), f(dc.ones "f32[3, 8]"):max():item(), first(g) }
  end
  lu.assertEquals(all(), { 0.25, 0.25, 0.25 })
  w:set(dc.full("f32[16, 8]", 2))
  lu.assertEquals(all(), { 0.125, 0.125, 0.125 })
end

function TestDerived:test_a_file_is_seen()
  local path = os.tmpname()
  local net = nn.Linear(8, 8)
  net.weight:set(dc.full("f32[8, 8]", 4))
  dc.save(path, net)
  net.weight:set(dc.ones "f32[8, 8]")
  local f = dc.fn("f(x: f32[8]) -> f32[8]", function(x) return x * net.weight:square():sum(1) end)
  lu.assertEquals(first(f), 8.0)
  dc.load(path, net)
  os.remove(path)
  lu.assertEquals(first(f), 128.0)
end

function TestDerived:test_training_and_evaluation_mode()
  local net = nn.BatchNorm2d(4)
  local f = dc.fn("f(x: f32[2, 4, 3, 3]) -> f32[2, 4, 3, 3]", function(x) return net(x) end)
  local x = dc.rand("f32[2, 4, 3, 3]", { seed = 3 }):clone()
  local function expected()
    local shape = { 1, 4, 1, 1 }
    return (x - net.running_mean:reshape(shape)) * (net.running_var:reshape(shape) + 1e-5):rsqrt()
  end
  net:eval()
  check.close(f(x):totable(), expected():totable(), 1e-5)
  net:train()
  f(x)
  net:eval()
  check.close(f(x):totable(), expected():totable(), 1e-5)
end

-- ---- jobs ----

function TestDerived:test_a_job_goes_on_with_the_old_values_and_the_next_call_has_the_new_ones()
  local w = dc.param("f32[16, 8]", dc.ones "f32[16, 8]")
  local f = scaled(w)
  local job = f:start(dc.ones "f32[8]")
  w:set(dc.full("f32[16, 8]", 2))
  while not job:poll { ms = 0 } do end
  lu.assertEquals(job:result()[1]:item(), 0.25)
  lu.assertEquals(first(f), 0.125)
end

function TestDerived:test_a_job_that_is_closed_leaves_nothing_half_done()
  local w = dc.param("f32[16, 8]", dc.ones "f32[16, 8]")
  local f = scaled(w)
  f:start(dc.ones "f32[8]"):close()
  lu.assertEquals(first(f), 0.25)
  w:set(dc.full("f32[16, 8]", 2))
  local job = f:start(dc.ones "f32[8]")
  job:poll { ms = 0 }
  job:close()
  lu.assertEquals(first(f), 0.125)
end

-- ---- memory ----

function TestDerived:test_many_specialisations_keep_a_bounded_amount()
  local w = dc.param("f32[1024, 1024]", dc.ones "f32[1024, 1024]") -- 4 MiB: 72 MiB may be kept
  local f = dc.fn("f(x: f32[N, 1024]) -> f32[N, 1024]", function(x)
    return x:matmul(w:square():rsqrt())
  end, nil, { limit = 40 })
  local before = dc.stats().bytes_live
  for n = 1, 30 do
    lu.assertEquals(f(dc.ones(("f32[%d, 1024]"):format(n))):max():item(), 1024.0)
  end
  lu.assertEquals(derived(f, 30), 1)
  lu.assertTrue(dc.stats().bytes_live - before < 2 ^ 20 * 90)
  lu.assertEquals(prologues(function() f(dc.ones "f32[1, 1024]") end), 1) -- dropped by then
  lu.assertEquals(prologues(function() f(dc.ones "f32[30, 1024]") end), 0)
end
