-- Weights that a function trains lie in memory as its convolutions read them. No read or write shows it.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local skip = os.getenv "DEEPC_SKIP" or ""
local off = (os.getenv "DEEPC_DEVICE" or "cpu") == "eval" or os.getenv "DEEPC_MATH" == "strict"
  or (os.getenv "DEEPC_OPT" or "2") < "2" or skip:find "layout" or skip:find "all"

TestRelayout = {}

function TestRelayout:setUp()
  lu.skipIf(off, "memory is laid out as the values here")
end

local X, GOAL = "f32[2, 16, 6, 6]", "f32[2, 32, 6, 6]"

-- A kernel of 18 KiB and one that is too small to matter.
local function network()
  return nn.Sequential { nn.Conv2d(16, 32, 3, { padding = 1 }), nn.Tanh(), nn.Conv2d(32, 32, 1) }
end

local function loss_of(net, x, goal)
  return (net(x) - goal):square():mean()
end

local function step_of(net, opt)
  return dc.fn(("step(x: %s, goal: %s) -> f32[]"):format(X, GOAL), function(x, goal)
    local loss = loss_of(net, x, goal)
    opt:step(loss)
    return loss
  end)
end

-- The same by gradient descent, with the new values as results: nothing is set, nothing is laid out anew.
local function plain_step(net, rate)
  local all = net:parameters()
  local f = dc.fn(
    ("plain(x: %s, goal: %s) -> f32[32], f32[32, 16, 3, 3], f32[32], f32[32, 32, 1, 1]"):format(X, GOAL),
    function(x, goal)
      local new = dc.grad(loss_of(net, x, goal), all)
      for i, p in ipairs(all) do new[i] = p - rate * new[i] end
      return table.unpack(new)
    end)
  return function(x, goal)
    local new = { f(x, goal) }
    for i, p in ipairs(all) do p:set(new[i]) end
  end
end

local function data(seed)
  return dc.rand(X, { seed = seed }):clone(), dc.rand(GOAL, { seed = seed + 1 }):clone()
end

local function relayouts(body)
  local before = dc.stats().relayouts
  body()
  return dc.stats().relayouts - before
end

local function copy(net)
  local other = network()
  for i, p in ipairs(other:parameters()) do p:set(net:parameters()[i]) end
  return other
end

local function same(a, b)
  for i, p in ipairs(a:parameters()) do check.close(p:totable(), b:parameters()[i]:totable(), 1e-5) end
end

function TestRelayout:test_a_steady_loop_moves_nothing()
  local net = network()
  local step, x, goal = step_of(net, optim.SGD(net:parameters(), { lr = 0.1, momentum = 0.9 })), data(1)
  lu.assertEquals(relayouts(function() step(x, goal) end), 2) -- the kernel and its velocity
  lu.assertEquals(relayouts(function() for _ = 1, 5 do step(x, goal) end end), 0)
  lu.assertStrContains(step:explain(), "laid out")
  lu.assertStrContains(step:explain(), "f32[3, 3, 16, 32]")
end

function TestRelayout:test_training_is_the_same()
  local net = network()
  local other = copy(net)
  local step, plain = step_of(net, optim.SGD(net:parameters(), { lr = 0.1 })), plain_step(other, 0.1)
  for i = 1, 6 do
    step(data(i))
    plain(data(i))
    if i % 2 == 0 then same(net, other) end
  end
end

function TestRelayout:test_reads_get_the_value()
  local net = network()
  local w = net[1].weight
  local step, x, goal = step_of(net, optim.AdamW(net:parameters(), { lr = 0.01 })), data(3)
  local double = dc.fn("double() -> f32[32, 16, 3, 3]", function() return w * 2 end)
  local held = {}
  for i = 1, 4 do
    step(x, goal)
    held[i] = { w:clone(), w * 1, double() }
    lu.assertEquals(w[7][5][2][3]:item(), held[i][1][7][5][2][3]:item())
    lu.assertEquals((held[i][1] - held[i][2]):abs():max():item(), 0.0)
    lu.assertEquals((held[i][1] * 2 - held[i][3]):abs():max():item(), 0.0)
  end
  lu.assertTrue((held[1][1] - held[2][1]):abs():max():item() > 0)
end

function TestRelayout:test_what_is_held_stays()
  local net = network()
  local w = net[1].weight
  local step, x, goal = step_of(net, optim.SGD(net:parameters(), { lr = 0.1 })), data(5)
  step(x, goal)
  local shown = w + 0
  local before = shown:totable()
  for _ = 1, 3 do step(x, goal) end
  lu.assertEquals(shown:totable(), before)
end

function TestRelayout:test_writes_replace_the_value()
  local net = network()
  local other = copy(net)
  local step, plain = step_of(net, optim.SGD(net:parameters(), { lr = 0.1 })), plain_step(other, 0.1)
  local x, goal = data(7)
  step(x, goal)
  local new = dc.rand("f32[32, 16, 3, 3]", { seed = 9 }):clone() * 0.1
  for i, p in ipairs(other:parameters()) do p:set(net:parameters()[i]) end
  net[1].weight:set(new)
  other[1].weight:set(new)
  step(x, goal)
  plain(x, goal)
  same(net, other)
end

function TestRelayout:test_files()
  local path, program = os.tmpname(), os.tmpname()
  local net = network()
  local step, x, goal = step_of(net, optim.SGD(net:parameters(), { lr = 0.1, momentum = 0.9 })), data(11)
  for _ = 1, 2 do step(x, goal) end
  dc.save(path, net)
  step:export(program)
  local other = network()
  dc.load(path, other)
  same(net, other)
  local exported = 0
  for _, t in pairs(dc.load(program)) do
    if #t.shape == 4 and t.shape[2] == 16 then -- the kernel and its velocity
      exported = exported + 1
      lu.assertEquals(t.shape, { 32, 16, 3, 3 })
      if (t - net[1].weight):abs():max():item() == 0 then exported = exported + 10 end
    end
  end
  lu.assertEquals(exported, 12)
  dc.load(path, net) -- over memory that is laid out
  same(net, other)
  os.remove(path)
  os.remove(program)
end

function TestRelayout:test_a_job_has_its_cells()
  local net = network()
  local other = copy(net)
  local step, plain = step_of(net, optim.SGD(net:parameters(), { lr = 0.1 })), plain_step(other, 0.1)
  local x, goal = data(13)
  for _ = 1, 3 do
    local job = step:start(x, goal)
    local ended = job:poll { ms = 0.001 }
    if not ended then lu.assertErrorMsgContains("DC0609", function() return net[1].weight:sum():item() end) end
    while not ended do ended = job:poll { ms = 5 } end
    job:result()
    plain(x, goal)
    same(net, other)
  end
end

-- An average of weights is updated with them and has their layout; one of another shape has not.
function TestRelayout:test_cells_updated_together()
  local net = network()
  local w = net[1].weight
  local mean = dc.state("f32[32, 16, 3, 3]", w:clone())
  local norms = dc.state "f32[32]"
  local opt = optim.SGD(net:parameters(), { lr = 0.1 })
  local step = dc.fn(("step(x: %s, goal: %s) -> f32[]"):format(X, GOAL), function(x, goal)
    local loss = loss_of(net, x, goal)
    opt:step(loss)
    mean:set(mean * 0.5 + w * 0.5)
    norms:set(w:square():sum { 2, 3, 4 })
    return loss
  end)
  local x, goal = data(17)
  for _ = 1, 3 do
    local before = mean:clone()
    lu.assertEquals(relayouts(function() step(x, goal) end), 2)
    check.close(mean:totable(), (before * 0.5 + w * 0.5):totable(), 1e-6)
    check.close(norms:totable(), w:square():sum({ 2, 3, 4 }):totable(), 1e-4)
  end
end
