-- Kernels have schedules, and work items for all threads: which are told by f:explain() where they are few.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local program = require "tests.lua.program"

local device = os.getenv "DEEPC_DEVICE" or "cpu"

TestWorkItems = {}

function TestWorkItems:setUp()
  if not device:find "^cpu" or os.getenv "DEEPC_SKIP" or os.getenv "DEEPC_OPT" then
    lu.skip "schedules of a CPU"
  end
end

-- Has each kernel that computes a contraction, or rows, a launch of many work items?
local function check_grids(f, pattern)
  local found = 0
  for i, k in ipairs(f:kernels()) do
    if k.name:find(pattern) then
      lu.assertStrContains(f:source(i, "schedule"), "grid")
      found = found + 1
    end
  end
  lu.assertTrue(found > 0)
end

local function residual(sig, n)
  return dc.fn("residual" .. sig, function(w, e, ids)
    local x = e:take(ids, 1) * 0.5
    return x + nn.layer_norm(x, n):matmul(w)
  end), dc.fn("turned" .. sig, function(w, e, ids)
    return w:matmul(e:take(ids, 1):transpose()) + e:take(ids, 1):transpose()
  end)
end

-- Rows that positions choose are read behind a product whose rows are cut: they are stored before.
function TestWorkItems:test_gathered_rows_beside_a_product()
  for _, size in ipairs { { 23, 64 }, { 250, 600 }, { 97, 520 } } do
    local m, n = table.unpack(size)
    local w = dc.randn(("f32[%d, %d]"):format(n, n), { seed = 1 }):clone()
    local e = dc.randn(("f32[40, %d]"):format(n), { seed = 2 }):clone()
    local ids = dc.iota(m) * 7 % 40
    local sig = ("(w: f32[%d, %d], e: f32[40, %d], ids: i32[%d])"):format(n, n, n, m)
    local f, turned = residual(sig, n)
    local x = (e:take(ids, 1) * 0.5):clone()
    local want = (x + nn.layer_norm(x, n):clone():matmul(w)):clone()
    lu.assertTrue((f(w, e, ids) - want):abs():max():item() < 1e-4)
    check_grids(f, "^D_")
    want = (w:matmul(e:take(ids, 1):transpose():clone()) + e:take(ids, 1):transpose()):clone()
    lu.assertTrue((turned(w, e, ids) - want):abs():max():item() < 1e-4)
    check_grids(turned, "^D_")
  end
end

-- Rows that are no whole vectors wait in a local, which each work item has by itself.
function TestWorkItems:test_rows_that_wait()
  for _, n in ipairs { 100, 1000, 130 } do
    local t = ("f32[64, %d]"):format(n)
    local f = dc.fn(("softmax(x: %s) -> %s"):format(t, t), function(x)
      return x:softmax(2)
    end)
    local x = dc.randn(t, { seed = 3 }):clone()
    lu.assertTrue((f(x):sum(2) - 1):abs():max():item() < 1e-5)
    check_grids(f, "^W_")
  end
end

local function results(f)
  local most = 0
  for i in ipairs(f:kernels()) do
    local _, n = f:source(i, "nest"):match("^[^\n]*"):gsub(" out[ ,)]", "")
    most = math.max(most, n)
  end
  return most
end

-- Updates of parameters of one shape read the same numbers, and nothing else in common.
function TestWorkItems:test_updates_of_one_shape_stay_apart()
  local net = nn.Sequential {
    nn.Linear(96, 96, { bias = false }),
    nn.Linear(96, 96, { bias = false }),
    nn.Linear(96, 96, { bias = false }),
    nn.Linear(96, 96, { bias = false }),
  }
  local opt = optim.Adam(net:parameters())
  local step = dc.fn("step(x: f32[8, 96]) -> f32[]", function(x)
    local loss = net(x):square():mean()
    opt:step(loss)
    return loss
  end)
  step(dc.ones "f32[8, 96]")
  lu.assertEquals(results(step), 3) -- a parameter and its two moments
end

-- What many results read in common is read by several kernels, so that each stores to few places.
function TestWorkItems:test_results_of_a_kernel_are_few()
  local given = dc.randn("f32[128, 128]", { seed = 4 }):clone()
  local states = {}
  for i = 1, 20 do
    states[i] = dc.state "f32[128, 128]"
  end
  local f = dc.fn("f(x: f32[128, 128]) -> f32[]", function(x)
    for i, s in ipairs(states) do
      s:set(s * 0.5 + dc.exp(x * i))
    end
    return x:sum()
  end)
  f(given)
  lu.assertTrue(results(f) <= 6)
  lu.assertTrue((states[20] - dc.exp(given * 20)):abs():max():item() == 0)
end

-- On a machine of other vectors and more cores: products whatever way their operands lie, maps of few outer rows.
function TestWorkItems:test_told_where_few()
  local path = program.script [[
local dc = require "deepc"
local a, b = dc.ones "f32[512, 512]", dc.ones "f32[512, 512]"
local sig = "f(a: f32[512, 512], b: f32[512, 512])"
local function idle(f, ...)
  f(...)
  local _, n = f:explain():gsub("work items? for more threads", "")
  return n
end
print(idle(dc.fn(sig, function(a, b) return a:matmul(b) end), a, b))
print(idle(dc.fn(sig, function(a, b) return a:transpose():matmul(b) end), a, b))
print(idle(dc.fn(sig, function(a, b) return a:matmul(b:transpose()) end), a, b))
print(idle(dc.fn(sig, function(a, b) return a:transpose():matmul(b:transpose()) end), a, b))
print(idle(dc.fn("f(x: f32[2, 1000, 1000], y: f32[2, 1, 1000])", function(x, y) return x * y + 1 end),
  dc.ones "f32[2, 1000, 1000]", dc.ones "f32[2, 1, 1000]"))
print(idle(dc.fn("f(x: f32[3, 700001])", function(x) return x:max(2) end), dc.ones "f32[3, 700001]"))
]]
  for _, machine in ipairs { "cores=8", "avx2,cores=8" } do
    local text, status = program.run(program.quote(path), "DEEPC_CHECK=1 DEEPC_DEVICE=cpu DEEPC_MACHINE=" .. machine)
    local counts = text:gsub("%[note%][^\n]*\n", "")
    lu.assertEquals(status, 0, text)
    lu.assertEquals(counts, "0\n0\n0\n0\n0\n1\n", machine)
    lu.assertNotNil(text:find "jit: R_%S+ has 3 work items for 8 threads, and ", machine)
  end
  os.remove(path)
end

