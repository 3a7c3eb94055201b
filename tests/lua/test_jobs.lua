-- Calls in slices: f:start, job:poll, job:result. What a job gives is what a call gives; what it sets is its own.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local fails = check.fails

TestJobs = {}

-- A step of training of several kernels, with its parameters.
local function training()
  local net = nn.Sequential { nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1) }
  for i, p in ipairs(net:parameters()) do
    p:set(nn.init.uniform(p, { low = -0.5, high = 0.5, seed = i }))
  end
  local opt = optim.Adam(net:parameters(), { lr = 1e-2 })
  local step = dc.fn("step(x: f32[n=4, 8]) -> f32[]", function(x)
    local loss = net(x):square():mean()
    opt:step(loss)
    return loss
  end)
  return step, net
end

local function values(net)
  local list = {}
  for i, p in ipairs(net:parameters()) do
    list[i] = p:totable()
  end
  return list
end

-- Runs it slice by slice; returns how many there were.
local function finish(job)
  local slices = 1
  while not job:poll { ms = 0 } do
    slices = slices + 1
  end
  return slices
end

-- f:ready has a function compiled and does not wait for that.
function TestJobs:test_ready()
  local f = dc.fn("f(x: f32[n]) -> f32[]", function(x) return (x:exp() + 1):log():sum() end)
  for n = 3, 5 do
    local x = dc.zeros("f32[" .. n .. "]")
    local began = os.time()
    while not f:ready(x) do lu.assertTrue(os.time() - began < 60) end
    lu.assertEquals(f:info()[n - 2].calls or 0, 0)
    lu.assertAlmostEquals(f:start(x):result():item(), n * math.log(2), 1e-5)
    lu.assertTrue(f:ready(x))
  end
  fails("f: arguments: 0 given", f.ready, f)
  fails("i32", f.ready, f, dc.zeros "i32[3]")
  fails("DC0604", dc.fn, "g(x: f32[3]) -> f32[]", function(x) return f:ready(x) and x:sum() or x:sum() end)
  local broken = dc.fn("broken(x: f32[n]) -> f32[]", function(x) return x:matmul(x:reshape(2, -1)) end)
  fails("matmul", broken.ready, broken, dc.zeros "f32[4]")
end

function TestJobs:test_a_job_gives_what_calls_give()
  local x = dc.randn("f32[4, 8]", { seed = 5 })
  local step, net = training()
  local sliced, other = training()
  local most = 0
  for _ = 1, 5 do
    local job = sliced:start(x)
    most = math.max(most, finish(job))
    lu.assertIsTrue(job:poll())
    lu.assertEquals(job:result():item(), step(x):item())
  end
  lu.assertEquals(values(other), values(net))
  if not sliced:info()[1].interpreted and not os.getenv "DEEPC_COMPARE" then -- which compares whole calls
    lu.assertTrue(most > 3, most)
  end
end

-- A slice that ends within an iteration: the next one goes on at the elements that the loops are at.
function TestJobs:test_loops()
  local w, total = dc.rand("f32[4, 4]", { seed = 2 }), dc.state "f32[]"
  local bodies = {
    function(x) return dc.map(function(e) return (e * 2 + 1):sin() end, x) end,
    function(x) return select(2, dc.scan(function(c, e) return c + e, c * e end, dc.zeros "f32[4]", x)) end,
    function(x)
      return select(2, dc.scan(function(c, e)
        c = (c:matmul(w) + e):tanh()
        return c, c
      end, dc.zeros "f32[4]", x, { reverse = true }))
    end,
    function(x)
      return dc.map(function(e)
        return (select(2, dc.scan(function(c, v) return c + v, c * v end, dc.full("f32[]", 0), e)))
      end, x)
    end,
    function(x)
      total:set(dc.zeros "f32[]")
      dc.fori(#x, function(i, c)
        total:set(total + x:take(i, 1):sum())
        return c
      end, dc.full("f32[]", 0))
      return x + total
    end,
    function(x)
      local c = dc.scan(function(c, e) return (c * 0.5 + e):sin() end, dc.zeros "f32[4]", x)
      return dc.grad(c:sum(), x)
    end,
  }
  for n, body in ipairs(bodies) do
    local f = dc.fn("f(x: f32[300, 4]) -> f32[300, 4]", body)
    local x = dc.rand("f32[300, 4]", { seed = n })
    local want = f(x):totable()
    for _, ms in ipairs { 0, 0.01, 0.05 } do
      local job, slices = f:start(x), 1
      while not job:poll { ms = ms } do
        slices = slices + 1
      end
      lu.assertEquals(job:result():totable(), want, ("%d, %d slices"):format(n, slices))
    end
  end
end

function TestJobs:test_results()
  local f = dc.fn("f(x: f32[n], k, y?: f32[n]) -> { a: f32[n], b: { f32[] } }", function(x, k, y)
    return { a = x * k + (y or 0), b = { x:sum(), x:max() } }
  end)
  local x = dc.tensor({ 1, 2, 3 }, "f32[rows=3]")
  local r = f:start(x, 2):result() -- without polling
  lu.assertEquals({ r.a:totable(), r.b[1]:item(), r.b[2]:item() }, { { 2, 4, 6 }, 6, 3 })
  lu.assertStrContains(tostring(r.a), "f32[rows=3]")
  r = f:start({ 1, 1 }, 3, { 5, 6 }):result()
  lu.assertEquals(r.a:totable(), { 8, 9 })
  local none = dc.fn("none() -> ()", function() end)
  lu.assertEquals(select("#", none:start():result()), 0)
end

-- Names are those of the call that started it, whatever calls come meanwhile.
function TestJobs:test_names_of_results()
  local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x + 1 end)
  f(dc.ones "f32[2]")
  local job = f:start(dc.ones "f32[rows=2]")
  fails("a job of it has not ended", f, dc.ones "f32[columns=2]")
  lu.assertStrContains(tostring(job:result()), "f32[rows=2]")
end

-- From start to end other calls cannot read or set what it sets; what it only reads may change.
function TestJobs:test_cells()
  local w, scale = dc.param("f32[2]", { 1, 2 }), dc.state("f32[]", 10)
  local f = dc.fn("f() -> ()", function() w:set(w * scale) end)
  local job = f:start()
  local err = fails("is being set by a job of 'f' that has not ended", function() return w:totable() end)
  lu.assertEquals(err.code, "DC0609")
  fails("is being set by a job of 'f'", w.set, w, { 0, 0 })
  scale:set(1000)
  fails("a job of it has not ended", f)
  job:result()
  lu.assertEquals(w:totable(), { 10, 20 })
  lu.assertEquals(scale:item(), 1000)
end

function TestJobs:test_arguments_are_kept()
  local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x) return x * 2 end)
  local x = dc.tensor { 1, 2, 3 }
  local job = f:start(x)
  x:close()
  lu.assertEquals(job:result():totable(), { 2, 4, 6 })
end

function TestJobs:test_a_job_that_is_dropped()
  local w = dc.param("f32[2]", { 1, 2 })
  local f = dc.fn("f() -> f32[2]", function()
    w:set(w + 1)
    return w
  end)
  f:start():close()
  lu.assertEquals(w:totable(), { 1, 2 })
  do
    local job <close> = f:start()
    lu.assertStrContains(tostring(job), "job of f (not done)")
  end
  lu.assertEquals(w:totable(), { 1, 2 })
  f:start()
  collectgarbage()
  collectgarbage()
  lu.assertEquals(f():totable(), { 2, 3 })
  local job = f:start()
  f, w = nil, nil -- luacheck: ignore (the job holds what it needs)
  collectgarbage()
  collectgarbage()
  lu.assertEquals(job:result():totable(), { 3, 4 })
  lu.assertStrContains(tostring(job), "job of f (ended)")
  fails("the job of 'f' has ended: its result was taken", job.result, job)
  fails("the job of 'f' has ended", job.poll, job)
  job:close()
end

-- A check that fails ends the job and changes nothing.
function TestJobs:test_a_check_that_fails()
  local w = dc.param("f32[3, 2]")
  local opt = optim.SGD({ w }, { lr = 1 })
  local step = dc.fn("step(labels: i32[1]) -> f32[]", function(labels)
    local loss = nn.cross_entropy(dc.ones "f32[1, 3]":matmul(w), labels)
    opt:step(loss)
    return loss
  end)
  local before = step({ 1 }):item()
  local was = w:totable()
  local job = step:start { 2 }
  local err = fails("class 2 outside 0..1", job.result, job)
  lu.assertEquals(err.code, "DC0701")
  lu.assertEquals(w:totable(), was)
  fails("it failed", job.result, job)
  lu.assertTrue(step({ 1 }):item() < before)
end

function TestJobs:test_captures_and_specialisations()
  local k = 2
  local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x * k end)
  lu.assertEquals(f:start({ 1 }):result():totable(), { 2 })
  lu.assertEquals(f:start({ 1, 1 }):result():totable(), { 2, 2 })
  lu.assertEquals(#f:info(), 2)
  local a, b = f:start { 1 }, f:start { 5, 6 } -- of two specialisations, side by side
  lu.assertEquals({ b:result():totable(), a:result():totable() }, { { 10, 12 }, { 2 } })
  k = 3
  fails("captured local 'k' changed from 2 to 3", f.start, f, { 1 })
  k = 2
  lu.assertEquals(f:start({ 1 }):result():totable(), { 2 })
end

function TestJobs:test_closed_while_its_options_are_read()
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x + 1 end)
  for _, how in ipairs { "close", "result" } do
    local job = f:start { 1, 2 }
    local options = setmetatable({}, { __index = function() job[how](job) end })
    fails("the job of 'f' has ended", job.poll, job, options)
  end
end

function TestJobs:test_mistakes()
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x + 1 end)
  fails("arguments: 0 given, 1 declared", f.start, f)
  fails("3 elements, 2 are needed", f.start, f, { 1, 2, 3 })
  fails("a job is started while a typed function is traced", dc.fn, "g(x: f32[2]) -> f32[2]",
    function(x) return f:start(x):result() end)
  local job = f:start { 1, 2 }
  fails("unknown option 'us'", job.poll, job, { us = 1 })
  fails("ms is a number of milliseconds, 0 or more", job.poll, job, { ms = -1 })
  lu.assertStrContains(fails("a job is needed, not nil", job.result).hint, "job:result()")
  lu.assertEquals(job:result():totable(), { 2, 3 })
  lu.assertFalse((pcall(setmetatable, job, {})))
end
