-- Several devices in one context: where values lie, copies, functions on each, parameters that move. `eval` and
-- `sim:cuda` are everywhere; `opencl:0` is left out with its reason where it is not there.
local lu = require "luaunit"
local dc = require "deepc"
local nn, optim = require "deepc.nn", require "deepc.optim"
local check = require "tests.lua.check"

local fails, close = check.fails, check.close
local HERE = dc.device()

-- The other devices that there are, besides the one of the context.
local function others()
  local list = {}
  for _, name in ipairs { "eval", "sim:cuda", "opencl:0", "cuda:0", "cuda:1" } do
    local ok, why = pcall(function() return dc.ones "f32[]":to(name) end)
    if name ~= HERE and ok then
      list[#list + 1] = name
    elseif not ok then
      io.stderr:write(("%s is left out: %s\n"):format(name, why.message:match "^[^\n]*"))
    end
  end
  return list
end

local DEVICES = others()
local OTHER = DEVICES[1]

TestSeveralDevices = {}

-- ---- values ----

function TestSeveralDevices:test_copies()
  local x = dc.tensor { { 1, 2 }, { 3, 4 } }
  lu.assertEquals(x.device, HERE)
  lu.assertTrue(rawequal(x:to(HERE), x))
  for _, name in ipairs(DEVICES) do
    local y = x:to(name)
    lu.assertEquals(y.device, name)
    lu.assertTrue(rawequal(y:to(name), y))
    lu.assertEquals(y:totable(), { { 1, 2 }, { 3, 4 } })
    lu.assertEquals(y:to(HERE):totable(), { { 1, 2 }, { 3, 4 } })
    lu.assertEquals(y:to(HERE).device, HERE)
    lu.assertEquals(tostring(y), tostring(x))
    lu.assertEquals(y[2][1]:item(), 3)
    lu.assertEquals(y:clone().device, name)
    lu.assertEquals(y:bytes(), x:bytes())
    for _, second in ipairs(DEVICES) do
      lu.assertEquals(y:to(second):totable(), { { 1, 2 }, { 3, 4 } })
    end
  end
end

function TestSeveralDevices:test_types_and_names_stay()
  for _, dtype in ipairs { "bool", "i8", "u64", "f16", "f64", "c64" } do
    local x = dc.ones(("%s[batch=3]"):format(dtype)):to(OTHER)
    lu.assertEquals(x.dtype, dtype)
    lu.assertEquals(x:size "batch", 3)
    lu.assertEquals(x:totable(), dc.ones(("%s[3]"):format(dtype)):totable())
  end
  lu.assertEquals(dc.zeros("f32[0, 3]"):to(OTHER).shape, { 0, 3 })
end

function TestSeveralDevices:test_parts_of_values()
  local x = dc.arange(24):cast "f32":reshape(4, 6)
  for _, name in ipairs(DEVICES) do
    local y = x:to(name)
    lu.assertEquals(y:transpose():totable(), x:transpose():totable())
    lu.assertEquals(y[{ { 2, 3 }, { 1, 6, 2 } }]:totable(), x[{ { 2, 3 }, { 1, 6, 2 } }]:totable())
    lu.assertEquals(x[{ { 2, 3 } }]:transpose():to(name):totable(), x[{ { 2, 3 } }]:transpose():totable())
    lu.assertEquals(y[{ {}, 2 }]:to(HERE):totable(), x[{ {}, 2 }]:totable())
  end
end

function TestSeveralDevices:test_names_that_are_none()
  local x = dc.ones "f32[2]"
  check.raises("to: no device is called 'abacus'; there are cpu, cpu:cc, eval, cuda:0, opencl:0", "DC1002", x.to, x,
    "abacus")
  check.raises("to: 'f16' is a dtype, not the name of a device", "DC0101", x.to, x, "f16")
  fails("[DC1002", x.to, x, "cuda:9999")
  fails("[DC0101", x.to, x)
  fails("[DC0101", x.to, x, 3)
  lu.assertEquals(x:totable(), { 1, 1 })
  lu.assertEquals((x + 1):totable(), { 2, 2 })
end

-- ---- operations ----

function TestSeveralDevices:test_operations_are_computed_where_their_operands_are()
  local x = dc.tensor { 1, 2, 3, 4 }
  for _, name in ipairs(DEVICES) do
    local y = x:to(name)
    local z = (y * y + 1):sqrt()
    lu.assertEquals(z.device, name)
    close(z:totable(), (x * x + 1):sqrt():totable())
    lu.assertEquals((2 - y).device, name)
    lu.assertEquals((y:matmul(y)).device, name)
    lu.assertEquals(dc.concat({ y, y }, 1):totable(), { 1, 2, 3, 4, 1, 2, 3, 4 })
    lu.assertEquals(dc.where(y:gt(2), y, 0):totable(), { 0, 0, 3, 4 })
    lu.assertEquals(y:put({ { 1, 2 } }, y[{ { 3, 4 } }]):totable(), { 3, 4, 3, 4 })
    local big = dc.rand("f32[100, 100]", { seed = 1 })
    close(big:to(name):matmul(big:to(name)):sum(1):totable(), big:matmul(big):sum(1):totable(), 1e-2)
  end
end

function TestSeveralDevices:test_operands_on_two_devices()
  local x = dc.tensor { 1, 2 }
  local y = x:to(OTHER)
  local err = check.raises(("add: the left tensor is on %s, the right one on %s"):format(HERE, OTHER), "DC1008",
    function() return x + y end)
  lu.assertStrContains(tostring(err), "x:to(device)")
  check.raises(("where: the first tensor is on %s, the third one on %s"):format(OTHER, HERE), "DC1008", dc.where,
    y:gt(0), 1, x)
  fails("[DC1008", dc.concat, { x, y }, 1)
  lu.assertEquals((x + y:to(HERE)):totable(), { 2, 4 })
end

-- What is made by rule is of no device, computed or not.
function TestSeveralDevices:test_what_is_made_by_rule_goes_anywhere()
  local y = dc.tensor({ 1, 2 }):to(OTHER)
  local ones = dc.ones "f32[2]"
  lu.assertEquals((y + ones):totable(), { 2, 3 })
  lu.assertEquals(ones:totable(), { 1, 1 })
  lu.assertEquals((y + ones).device, OTHER)
  local draw = dc.rand("f32[2]", { seed = 4 })
  lu.assertEquals((y * 0 + draw):totable(), draw:totable())
  lu.assertEquals(dc.where(dc.arange(2):gt(0), y, 0):totable(), { 0, 2 })
end

-- Tables that an operation takes, and the numbers that the library puts beside a tensor, go to where that is.
function TestSeveralDevices:test_tables_of_operations_go_anywhere()
  local x = dc.rand("f32[1, 2, 6, 6]", { seed = 1 }):clone()
  local operations = {
    take = function(y) return y:take({ 1, 2 }, 3) end,
    put = function(y) return y:put(dc.iota "i32[2]", 7, 4) end,
    isin = function(y) return y:isin { 1, 2 } end,
    interpolate = function(y) return nn.interpolate(y, { size = { 9, 9 }, mode = "bilinear" }) end,
    pool = function(y) return nn.AdaptiveAvgPool2d(4)(y) end,
    layer = function(y) return nn.TransformerEncoderLayer(6, 2):to(y.device):eval()(y[1]) * 0 end,
    scan = function(y) return (dc.scan(function(c, a) return c + a, c end, dc.zeros "f32[2, 6, 6]", y)) end,
    inverse = function(y) return require("deepc.linalg").inverse(y[1][1] + dc.eye "f32[6, 6]" * 3) end,
    sort = function(y) return (y:sort(4)) end,
  }
  for what, f in pairs(operations) do
    local want = f(x)
    for _, name in ipairs(DEVICES) do
      local got = f(x:to(name))
      lu.assertEquals(got.device, name, what)
      lu.assertTrue((got:to(HERE):cast "f32" - want:cast "f32"):abs():max():item() < 1e-4, what)
    end
  end
end

function TestSeveralDevices:test_gradients_outside_of_functions()
  for _, name in ipairs(DEVICES) do
    local w = dc.param("f32[3]", { 1, 2, 3 }, { device = name })
    local x = dc.tensor({ 1, 2, 4 }):to(name)
    local g = dc.grad((w * w * x):sum(), w)
    lu.assertEquals(g.device, name)
    lu.assertEquals(g:totable(), { 2, 8, 24 })
    local v = dc.param("f32[3]", 1)
    check.raises(("grad: the loss is on %s, number 1 of what the gradient is for on %s"):format(name, HERE), "DC1008",
      dc.grad, (w * x):sum(), v)
  end
end

-- ---- typed functions ----

function TestSeveralDevices:test_a_function_runs_where_its_arguments_are()
  local f = dc.fn("f(x: f32[n], k: f32[]) -> f32[n], f32[]", function(x, k)
    return x * k + dc.tensor { 1, 2, 3 }, x:sum()
  end)
  local x = dc.tensor { 1, 2, 3 }
  local want = f(x, 2):totable()
  for _ = 1, 3 do
    for _, name in ipairs(DEVICES) do
      local y, sum = f(x:to(name), 2)
      lu.assertEquals({ y.device, sum.device }, { name, name })
      lu.assertEquals(y:totable(), want)
      lu.assertEquals(f(x:to(name), sum):totable(), { 7, 14, 21 })
    end
    local y = f(x, 2)
    lu.assertEquals(y.device, HERE)
    lu.assertEquals(y:totable(), want)
  end
  lu.assertEquals(f({ 1, 2, 3 }, 2).device, HERE)
  lu.assertEquals(f(dc.ones("f32[3]"), x:to(OTHER):sum()):totable(), { 7, 8, 9 })
  lu.assertEquals(f({ 1, 1, 1 }, x:to(OTHER):sum()).device, OTHER)
end

function TestSeveralDevices:test_each_device_is_one_specialisation()
  local f = dc.fn("(x: f32[4]) -> f32[4]", function(x) return x + 1 end)
  local x = dc.tensor { 1, 2, 3, 4 }
  local y = x:to(OTHER)
  for _ = 1, 2 do -- the second call traces again
    f(x)
    f(y)
  end
  local before = dc.stats().traces
  for _ = 1, 4 do
    lu.assertEquals(f(f(x)).device, HERE)
    lu.assertEquals(f(f(y)).device, OTHER)
  end
  f { 1, 2, 3, 4 }
  lu.assertEquals(dc.stats().traces, before)
end

function TestSeveralDevices:test_each_device_has_the_limit()
  local f = dc.fn("(x: f32[n]) -> f32[]", function(x) return x:sum() end, nil, { limit = 2 })
  for n = 1, 2 do
    for _, name in ipairs { HERE, OTHER } do
      lu.assertEquals(f(dc.ones(("f32[%d]"):format(n)):clone():to(name)):item(), n)
    end
  end
  fails("2 specialisations are compiled, which is its limit", f, dc.ones "f32[3]":clone():to(OTHER))
end

function TestSeveralDevices:test_arguments_on_two_devices()
  local f = dc.fn("f(x: f32[n], y: f32[n]) -> f32[n]", function(x, y) return x + y end)
  local x = dc.tensor { 1, 2 }
  check.raises(("f: argument 'x' is on %s, argument 'y' on %s"):format(HERE, OTHER), "DC1008", f, x, x:to(OTHER))
  check.raises(("f: argument 'x' is on %s, argument 'y' on %s"):format(OTHER, HERE), "DC1008", f, x:to(OTHER), x)
  lu.assertEquals(f(x:to(OTHER), { 1, 1 }).device, OTHER)
  lu.assertEquals(f({ 1, 1 }, x:to(OTHER)):totable(), { 2, 3 })
  f(x, x)
  fails("[DC1008", f, x, x:to(OTHER))
end

function TestSeveralDevices:test_what_is_captured()
  local w = dc.tensor { 1, 2 }
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x * w end)
  local x = dc.tensor({ 3, 4 }):to(OTHER)
  check.raises(("mul: 'f' computes on %s, where its arguments are, and a tensor that it captures is on %s")
    :format(OTHER, HERE), "DC1008", f, x)
  lu.assertEquals(f({ 3, 4 }):totable(), { 3, 8 })
  w = w:to(OTHER)
  lu.assertEquals(dc.fn("(y: f32[2]) -> f32[2]", function(y) return y * w end)(x):totable(), { 3, 8 })
  -- without tensors among the arguments what is captured tells
  local g = dc.fn("g(k: f32[]) -> f32[2]", function(k) return w * k end)
  lu.assertEquals(g(2).device, OTHER)
  lu.assertEquals(g(2):totable(), { 2, 4 })
  local v = dc.tensor { 1, 2 }
  check.raises(("add: 'h' computes on %s, where a tensor that it captures is, and a tensor that it captures is on %s")
    :format(OTHER, HERE), "DC1008", dc.fn, "h(k: f32[]) -> f32[2]", function(k) return w * k + v end)
end

function TestSeveralDevices:test_lazy_tensors_that_are_captured()
  local ones, zero = dc.ones "f32[2]", dc.zeros "f32[]"
  local w = dc.tensor({ 1, 2 }):to(OTHER) * 2
  local f = dc.fn("(x: f32[2]) -> f32[2]", function(x) return x * w + ones + zero end)
  lu.assertEquals(f(dc.tensor({ 3, 4 }):to(OTHER)):totable(), { 7, 17 })
end

function TestSeveralDevices:test_no_other_device_inside()
  local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x:to(OTHER) end)
  check.raises("to: 'f' is traced, and a function computes on one device", "DC0604", f, { 1, 2 })
  local p = dc.param "f32[2]"
  fails("move: 'f' is traced", dc.fn("f(x: f32[n]) -> f32[n]", function(x)
    p:move(OTHER)
    return x
  end), { 1, 2 })
  local seen = {}
  dc.fn("(x: f32[n]) -> f32[n]", function(x)
    seen[1] = x.device
    return x
  end)(dc.tensor({ 1, 2 }):to(OTHER))
  lu.assertEquals(seen, { OTHER })
end

function TestSeveralDevices:test_loops_and_inner_calls()
  local inner = dc.fn("(x: f32[n]) -> f32[n]", function(x) return x * 2 end)
  local f = dc.fn("(x: f32[n]) -> f32[n]", function(x)
    return (dc.fori(3, function(_, y) return inner(y) + 1 end, x))
  end)
  for _, name in ipairs(DEVICES) do
    lu.assertEquals(f(dc.tensor({ 1, 2 }):to(name)):totable(), { 15, 23 })
  end
end

function TestSeveralDevices:test_bounded_sizes()
  local f = dc.fn("(x: f32[n <= 8]) -> f32[n], f32[]", function(x) return x * 2, x:sum() end)
  for _, name in ipairs { OTHER, HERE, table.unpack(DEVICES) } do
    for n = 1, 8, 3 do
      local y, sum = f(dc.ones(("f32[%d]"):format(n)):clone():to(name))
      lu.assertEquals(sum:item(), n)
      lu.assertEquals(y.device, name)
      lu.assertEquals(#y:totable(), n)
    end
  end
end

function TestSeveralDevices:test_checks_of_data()
  local f = dc.fn("(x: f32[n, 3], c: i32[n]) -> f32[]", function(x, c) return nn.cross_entropy(x, c) end)
  for _, name in ipairs(DEVICES) do
    local x = dc.ones("f32[2, 3]"):clone():to(name)
    lu.assertAlmostEquals(f(x, dc.tensor({ 0, 1 }, "i32[2]"):to(name)):item(), math.log(3), 1e-5)
    fails("class 7 outside 0..2 at row 2", function() return f(x, dc.tensor({ 0, 7 }, "i32[2]"):to(name)):item() end)
    lu.assertAlmostEquals(f(x, dc.tensor({ 0, 1 }, "i32[2]"):to(name)):item(), math.log(3), 1e-5)
  end
end

function TestSeveralDevices:test_jobs()
  local f = dc.fn("(x: f32[n]) -> f32[n]", function(x) return (x * 2):exp():log() end)
  local jobs = {}
  for i, name in ipairs(DEVICES) do
    jobs[i] = f:start(dc.tensor({ 1, 2, 3 }):to(name))
  end
  for i, name in ipairs(DEVICES) do
    local y = jobs[i]:result()
    lu.assertEquals(y.device, name)
    close(y:totable(), { 2, 4, 6 }, 1e-5)
  end
end

-- ---- parameters and states ----

function TestSeveralDevices:test_cells_are_made_where_it_is_said()
  local x = dc.tensor({ 1, 2 }):to(OTHER)
  lu.assertEquals(dc.param("f32[2]").device, HERE)
  lu.assertEquals(dc.param(x).device, OTHER)
  lu.assertEquals(dc.param(x):totable(), { 1, 2 })
  lu.assertEquals(dc.param(x, nil, { device = HERE }).device, HERE)
  lu.assertEquals(dc.param(x, { 3, 4 }, { device = HERE }):totable(), { 3, 4 })
  local drawn = dc.param("f32[2]", dc.rand("f32[2]", { seed = 1 }), { device = OTHER })
  lu.assertEquals(drawn.device, OTHER)
  lu.assertEquals(drawn:totable(), dc.rand("f32[2]", { seed = 1 }):totable())
  lu.assertEquals(dc.state("i32[]", 7, { device = OTHER }):item(), 7)
  lu.assertEquals(dc.state(drawn).device, OTHER)
  fails("abacus", dc.state, "i32[]", 7, { device = "abacus" })
  fails("unknown option 'devices'", dc.state, "i32[]", 7, { devices = OTHER })
end

function TestSeveralDevices:test_set_takes_values_from_anywhere()
  local p = dc.param("f32[2]", 0, { device = OTHER })
  local seen = p + 0
  p:set(dc.tensor { 1, 2 })
  lu.assertEquals(p:totable(), { 1, 2 })
  p:set(dc.tensor({ 3, 4 }):to(DEVICES[#DEVICES]))
  lu.assertEquals(p:totable(), { 3, 4 })
  lu.assertEquals(p.device, OTHER)
  lu.assertEquals(seen:totable(), { 0, 0 })
end

function TestSeveralDevices:test_cells_move()
  local w = dc.param("f32[2]", { 1, 2 })
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x * w end)
  local x = dc.tensor { 3, 4 }
  local shown = w:to(HERE)
  lu.assertEquals(f(x):totable(), { 3, 8 })
  for _, name in ipairs(DEVICES) do
    lu.assertTrue(rawequal(w:move(name), w))
    lu.assertEquals(w.device, name)
    lu.assertEquals(w:totable(), { 1, 2 })
    lu.assertEquals(f(x:to(name)):totable(), { 3, 8 })
    lu.assertEquals(f(x:to(name)):totable(), { 3, 8 })
    check.raises(("mul: 'f' computes on %s, where its arguments are, and a parameter is on %s"):format(HERE, name),
      "DC1008", f, x)
    w:move(HERE)
    lu.assertEquals(f(x):totable(), { 3, 8 })
    fails("[DC1008", f, x:to(name))
  end
  lu.assertEquals(shown:totable(), { 1, 2 })
  lu.assertEquals(shown.device, HERE)
  fails("[DC0206", x.move, x, OTHER)
  fails("abacus", w.move, w, "abacus")
  lu.assertEquals(f(x):totable(), { 3, 8 })
end

-- More often than a function may have specialisations: those that cells have left are no more.
function TestSeveralDevices:test_cells_move_to_and_fro()
  local n = dc.state("f32[]", 0)
  local f = dc.fn("(x: f32[2]) -> f32[2]", function(x)
    n:set(n + 1)
    return x * n
  end)
  local x = { [HERE] = dc.tensor { 1, 1 }, [OTHER] = dc.tensor({ 1, 1 }):to(OTHER) }
  for i = 1, 40 do
    local name = i % 2 == 0 and HERE or OTHER
    n:move(name)
    lu.assertEquals(f(x[name]):totable(), { i, i })
  end
end

function TestSeveralDevices:test_states_that_grow()
  local s = dc.state("f32[t <= 4, 2]", nil, { device = OTHER })
  s:set(dc.ones "f32[3, 2]")
  lu.assertEquals(s.shape, { 3, 2 })
  s:move(HERE)
  lu.assertEquals(s:totable(), { { 1, 1 }, { 1, 1 }, { 1, 1 } })
  s:move(OTHER)
  local add = dc.fn("(x: f32[1, 2]) -> f32[]", function(x)
    s:set(dc.concat({ s, x }, 1))
    return s:sum()
  end)
  lu.assertEquals(add(dc.ones("f32[1, 2]"):clone():to(OTHER)):item(), 8)
  lu.assertEquals(s.shape, { 4, 2 })
end

function TestSeveralDevices:test_states_made_inside()
  local f = dc.fn("(x: f32[n]) -> f32[n]", function(x)
    local count = dc.state("f32[]", 0)
    count:set(count + 1)
    return x * count
  end)
  local x = dc.tensor({ 1, 2 }):to(OTHER)
  lu.assertEquals(f(x):totable(), { 1, 2 })
  lu.assertEquals(f(x):totable(), { 2, 4 })
  lu.assertEquals(f({ 1, 2 }).device, OTHER) -- where its state is
  fails("a state is on " .. OTHER, f, dc.tensor { 1, 2 })
end

-- ---- random numbers ----

function TestSeveralDevices:test_one_generator()
  local f = dc.fn("(x: f32[n]) -> f32[n]", function(x) return x * 0 + dc.rand(("f32[%d]"):format(#x)) end)
  local x = dc.zeros("f32[3]"):clone()
  local function draw(names)
    dc.seed(5)
    local list = {}
    for i, name in ipairs(names) do
      list[2 * i - 1] = f(x:to(name)):totable()
      list[2 * i] = dc.rand("f32[2]"):totable()
    end
    list[#list + 1] = dc.generator():totable()
    return list
  end
  local want = draw { HERE, HERE, HERE, HERE, HERE }
  for _, name in ipairs(DEVICES) do
    lu.assertEquals(draw { name, name, HERE, name, HERE }, want)
    lu.assertEquals(draw { HERE, name, HERE, HERE, name }, want)
  end
  local g = dc.generator()
  f(x:to(OTHER))
  local saved, after = g:totable(), f(x):totable()
  g:set(saved)
  lu.assertEquals(f(x:to(OTHER)):totable(), after)
  fails("the generator goes by itself", g.move, g, OTHER)
end

-- ---- layers, optimisers, files ----

local function train(name, steps, second)
  dc.seed(3)
  local net = nn.Sequential { nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 2) }
  lu.assertTrue(rawequal(net:to(name), net))
  local opt = optim.AdamW(net:parameters(), { lr = 0.01 })
  local step = dc.fn("(x: f32[n, 4], y: f32[n, 2]) -> f32[]", function(x, y)
    local loss = ((net(x) - y) ^ 2):mean()
    opt:step(loss)
    return loss
  end)
  local x, y = dc.rand("f32[16, 4]", { seed = 1 }):clone(), dc.rand("f32[16, 2]", { seed = 2 }):clone()
  local losses, on = {}, name
  for i = 1, steps do
    if i > steps / 2 and second and on ~= second then
      on = second
      net:to(on)
      opt:to(on)
    end
    losses[i] = step(x:to(on), y:to(on)):item()
  end
  return losses, net, opt
end

function TestSeveralDevices:test_training()
  local want = train(HERE, 6)
  for _, name in ipairs(DEVICES) do
    local losses, net = train(name, 6)
    close(losses, want, 1e-4)
    for _, named in ipairs(net:named_cells()) do
      lu.assertEquals(named[2].device, name)
    end
    lu.assertEquals(net(dc.ones "f32[2, 4]":clone():to(name)).device, name)
    close(train(name, 6, HERE), want, 1e-4)
    close(train(HERE, 6, name), want, 1e-4)
  end
end

-- With metrics, averages and evaluation: all that a run counts is where the model is.
function TestSeveralDevices:test_the_training_loop()
  local data, fit = require "deepc.data", require("deepc.train").fit
  local metrics = require "deepc.metrics"
  local function run(name)
    dc.seed(1)
    local net = nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3) }:to(name)
    local set = data.set(dc.rand("f32[32, 4]", { seed = 1 }):to(name), dc.randint("i32[32]", { high = 3, seed = 2 }))
    local accuracy = metrics.Accuracy()
    local result = fit { model = net, data = set, batch = 8, epochs = 2, evaluate = set, progress = false,
      optimizer = optim.Adam(net:parameters()), average = optim.EMA(net, 0.9), metrics = { accuracy = accuracy },
      loss = function(x, y)
        local logits = net(x)
        return nn.cross_entropy(logits, y), logits
      end }
    lu.assertEquals(accuracy:named_cells()[1][2].device, name)
    return result.history[2]
  end
  local want = run(HERE)
  for _, name in ipairs(DEVICES) do
    local got = run(name)
    for key, value in pairs(want) do
      lu.assertAlmostEquals(got[key], value, 1e-4, key)
    end
  end
end

function TestSeveralDevices:test_loss_scaling()
  for _, name in ipairs(DEVICES) do
    local net = nn.Linear(4, 2):to(name)
    local scaler, opt = optim.GradScaler():to(name), optim.SGD(net:parameters(), { lr = 0.1 })
    local step = dc.fn("(x: f32[n, 4]) -> f32[]", function(x)
      local loss = (net(x) ^ 2):mean()
      scaler:step(opt, loss)
      return loss
    end)
    local x = dc.ones("f32[2, 4]"):to(name)
    lu.assertTrue(step(x):item() > step(x):item())
  end
end

function TestSeveralDevices:test_layers_of_a_net_on_two_devices()
  local first, second = nn.Linear(3, 4):to(OTHER), nn.Linear(4, 2)
  local y = second(first(dc.ones "f32[1, 3]":clone():to(OTHER)):to(HERE))
  lu.assertEquals(y.device, HERE)
  fails("[DC1008", function() return second(first(dc.ones "f32[1, 3]")) end)
  fails('the name of a device is needed, not \'f16\'', first.to, first, "f16")
  fails("abacus", first.to, first, "abacus")
end

function TestSeveralDevices:test_language_models()
  local models = require "deepc.models"
  dc.seed(1)
  local net = models.llama({ vocab_size = 40, hidden_size = 16, intermediate_size = 24, num_hidden_layers = 2,
    num_attention_heads = 4, num_key_value_heads = 2, initializer_range = 0.3 }):eval()
  local how = { max = 8, temperature = 0.8, seed = 3, repetition_penalty = 1.2 }
  local want = models.generate(net, { 1, 2, 3 }, how)
  for _, name in ipairs(DEVICES) do
    lu.assertEquals(models.generate(net:to(name), { 1, 2, 3 }, how), want)
    lu.assertEquals(net:cache(8):named_cells()[1][2].device, name)
  end
end

function TestSeveralDevices:test_files()
  local path = os.tmpname() .. ".safetensors"
  local net = nn.Sequential { nn.Linear(3, 4):to(OTHER), nn.Linear(4, 2):to(DEVICES[#DEVICES]) }
  dc.save(path, net)
  local copy = nn.Sequential { nn.Linear(3, 4), nn.Linear(4, 2):to(OTHER) }
  dc.load(path, copy)
  for i, named in ipairs(net:named_cells()) do
    lu.assertEquals(copy:named_cells()[i][2]:totable(), named[2]:totable())
  end
  lu.assertEquals(copy[2].weight.device, OTHER)
  dc.save(path, { x = dc.tensor({ 1, 2 }):to(OTHER), y = dc.tensor { 3 } })
  local back = dc.load(path)
  lu.assertEquals({ back.x:totable(), back.y:totable(), back.x.device }, { { 1, 2 }, { 3 }, HERE })
  os.remove(path)
end

function TestSeveralDevices:test_functions_in_files()
  local path = os.tmpname() .. ".safetensors"
  local w = dc.param("f32[2]", { 1, 2 }, { device = OTHER })
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x * w + dc.tensor { 1, 1 } end)
  f(dc.tensor({ 1, 1 }):to(OTHER))
  f:export(path)
  lu.assertEquals(dc.load(path).parameter:totable(), { 1, 2 })
  os.remove(path)
end

function TestSeveralDevices:test_batches_are_made_where_the_set_is()
  local data = require "deepc.data"
  local x = dc.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }
  for _, options in ipairs { { size = 3 }, { size = 2, last = "pad", shuffle = true, seed = 1 },
    { size = 2, last = "keep" } } do
    local function rows(name)
      local list = {}
      for row, number, mask in data.set(x:to(name), dc.iota "i32[3]"):batches(options) do
        lu.assertEquals({ row.device, number.device }, { name, name })
        list[#list + 1] = { row:totable(), number:totable(), mask and mask:totable() }
      end
      return list
    end
    local want = rows(HERE)
    for _, name in ipairs(DEVICES) do
      lu.assertEquals(rows(name), want)
    end
  end
  check.raises(("batches: a tensor of the set is on %s, another one on %s"):format(HERE, OTHER), "DC1008", function()
    data.set(x, x:to(OTHER)):batches { size = 1 }()
  end)
end

-- ---- memory ----

local function live()
  collectgarbage()
  collectgarbage()
  return dc.stats().bytes_live
end

function TestSeveralDevices:test_memory_is_counted()
  local x = dc.ones("f32[1000]"):clone()
  local before = live()
  local y = x:to(OTHER)
  lu.assertTrue(live() >= before + 4000)
  y:close()
  lu.assertEquals(live(), before)
  do
    local _ <close> = dc.scope()
    lu.assertEquals((x:to(OTHER) * 2):sum():item(), 2000)
  end
  lu.assertEquals(live(), before)
end
