-- train.fit: what it computes is what a loop by hand does; runs that go on; logs.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"
local metrics = require "deepc.metrics"
local schedules = require "deepc.schedules"
local train = require "deepc.train"
local check = require "tests.lua.check"

local fails = check.fails

local X = dc.randn("f32[50, 2]", { seed = 1 }):clone()
local Y = X:sum(2):gt(0):cast("i32"):clone()

-- A network that draws random numbers, its optimiser and a set: the same each time.
local function new(more)
  dc.seed(7)
  local net = nn.Sequential { nn.Linear(2, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 2) }
  local o = { model = net, optimizer = optim.Adam(net:parameters(), { lr = 0.02 }), data = data.set(X, Y), batch = 10,
    progress = false, metrics = { accuracy = metrics.Accuracy() },
    loss = function(x, y, mask)
      local logits = net(x)
      return nn.cross_entropy(logits, y, { mask = mask }), logits
    end }
  for key, value in pairs(more or {}) do
    o[key] = value
  end
  return o
end

local function weights(o)
  local list = {}
  for i, named in ipairs(o.model:named_cells()) do
    list[i] = named[2]:reshape(-1):totable()
  end
  return list
end

-- The names of n files that are not there.
local function files(n)
  local list = {}
  for i = 1, n do
    list[i] = os.tmpname()
    os.remove(list[i])
  end
  return table.unpack(list)
end

TestFit = {}

function TestFit:test_is_the_loop_by_hand()
  local a = new { epochs = 2 }
  local run = train.fit(a)
  local b, set = new(), data.set(X, Y)
  local step = dc.fn("step(x: f32[batch, 2], y: i32[batch]) -> f32[]", function(x, y)
    local loss = b.loss(x, y)
    b.optimizer:step(loss)
    return loss
  end)
  local sum
  for _ = 1, 2 do
    sum = 0
    for x, y in set:batches { size = 10, shuffle = true } do
      sum = sum + step(x, y):item()
    end
  end
  lu.assertEquals(weights(a), weights(b))
  lu.assertEquals({ run.epoch, run.step, #run.history }, { 2, 10, 2 })
  lu.assertAlmostEquals(run.history[2].loss, sum / 5, 1e-6)
  lu.assertTrue(run.history[2].accuracy > 0 and run.history[2].accuracy <= 1)
end

function TestFit:test_evaluates_in_evaluation_mode()
  local test = data.set(X[{ { 1, 7 } }]:clone(), Y[{ { 1, 7 } }]:clone())
  local o = new { epochs = 1, evaluate = test, evaluate_batch = { size = 4, last = "pad" } }
  local run = train.fit(o)
  o.model:eval()
  local logits = o.model(test.x)
  lu.assertAlmostEquals(run.history[1]["eval.loss"], nn.cross_entropy(logits, test.y):item(), 1e-6)
  lu.assertAlmostEquals(run.history[1]["eval.accuracy"], metrics.accuracy(logits, test.y):item(), 1e-6)
  o = new { epochs = 1, evaluate = function(r) return { steps = r.step, tensor = dc.tensor(2) } end }
  run = train.fit(o)
  lu.assertEquals({ run.history[1]["eval.steps"], run.history[1]["eval.tensor"] }, { 5, 2 })
  lu.assertTrue(o.model.training)
end

-- A smaller last batch is compiled for beforehand, and what comes out is exact, whatever the loss asks of sizes.
function TestFit:test_a_smaller_last_batch()
  local function compiled(rows, size, more)
    local test = data.set(X[{ { 1, rows } }]:clone(), Y[{ { 1, rows } }]:clone())
    local o = new { epochs = 1, evaluate = test, evaluate_batch = size }
    for key, value in pairs(more or {}) do
      o[key] = value(o)
    end
    local before = dc.stats().compiles
    local run = train.fit(o)
    local count = dc.stats().compiles - before
    o.model:eval()
    local logits = o.model(test.x)
    lu.assertAlmostEquals(run.history[1]["eval.loss"], nn.cross_entropy(logits, test.y):item(), 1e-6)
    lu.assertAlmostEquals(run.history[1]["eval.accuracy"], metrics.accuracy(logits, test.y):item(), 1e-6)
    return count
  end
  local whole = compiled(48, 12)
  lu.assertEquals(compiled(47, 12), whole + 1)
  lu.assertEquals(compiled(49, 12), whole + 1)
  lu.assertEquals(compiled(7, 12), whole)
  local function compares(o)
    return function(x, y)
      local logits = o.model(x)
      return nn.cross_entropy(logits, y) + ((#x == 12 or #x == 11) and 0 or 1000), logits
    end
  end
  lu.assertEquals(compiled(47, 12, { loss = compares }), whole + 1)
end

-- Metrics over such batches are those of all rows at once.
function TestFit:test_metrics_of_a_smaller_last_batch()
  local test = data.set(X[{ { 1, 47 } }]:clone(), Y[{ { 1, 47 } }]:clone())
  local function evaluated(size)
    local o = new { epochs = 1, evaluate = test, evaluate_batch = size, metrics = { accuracy = metrics.Accuracy(),
      top = metrics.Accuracy { top = 1 }, perplexity = metrics.Perplexity() } }
    return train.fit(o).history[1]
  end
  local all = evaluated(47)
  local parts = evaluated(10)
  for name, value in pairs(all) do
    lu.assertAlmostEquals(parts[name], value, 1e-5, name)
  end
end

-- A set of one's own may begin with a small batch, and have larger ones behind it.
function TestFit:test_batches_that_grow()
  local set = {}
  function set:batches()
    local from = { 1, 3, 8 }
    local i = 0
    return function()
      i = i + 1
      if from[i] then
        local rows = { { from[i], (from[i + 1] or 13) - 1 } }
        return X[rows], Y[rows]
      end
    end
  end
  local o = new { epochs = 2, evaluate = set }
  local run = train.fit(o)
  o.model:eval()
  local all = { { 1, 12 } }
  lu.assertAlmostEquals(run.history[2]["eval.loss"], nn.cross_entropy(o.model(X[all]), Y[all]):item(), 1e-6)
end

-- Rows that fill up a batch do not count; a loss weighs as many rows as it is of.
function TestFit:test_rows_count()
  local some = data.set(X[{ { 1, 13 } }]:clone(), Y[{ { 1, 13 } }]:clone())
  local o = new { epochs = 1, data = some, batch = { size = 5, last = "pad", shuffle = false } }
  o.optimizer.lr = 0
  o.model[3] = nn.Identity()
  local run = train.fit(o)
  lu.assertAlmostEquals(run.history[1].loss, nn.cross_entropy(o.model(some.x), some.y):item(), 1e-6)
  local kept = new { epochs = 1, data = some, batch = { size = 5, last = "keep", shuffle = false } }
  kept.optimizer.lr = 0
  kept.model[3] = nn.Identity()
  lu.assertAlmostEquals(train.fit(kept).history[1].loss, run.history[1].loss, 1e-6)
end

function TestFit:test_schedules_averages_scaling()
  local rates = {}
  local o = new { steps = 7, schedule = schedules.linear { from = 0.1, to = 0, steps = 10 }, autocast = "f16",
    scaler = optim.GradScaler(), on_step = function(run) rates[run.step] = run.lr end }
  o.average = optim.EMA(o.model, 0.5)
  o.evaluate = data.set(X, Y)
  local run = train.fit(o)
  check.close(rates, { 0.1, 0.09, 0.08, 0.07, 0.06, 0.05, 0.04 })
  lu.assertEquals({ run.step, run.epoch }, { 7, 2 })
  lu.assertEquals(o.scaler:named_cells()[2][2]:item(), 7)
  o.model:eval()
  local with = o.average:averaged(function() return o.loss(X, Y):item() end)
  lu.assertAlmostEquals(run.history[2]["eval.loss"], with, 1e-3) -- 16-bit products are other programs lazily
end

function TestFit:test_ends_early()
  local values = { 3, 2, 2.5, 2.5, 1 }
  local best = files(1)
  local o = new { epochs = 5, evaluate = function(run) return { loss = values[run.epoch + 1] } end,
    monitor = "eval.loss", early_stop = 2, best = best }
  local run = train.fit(o)
  lu.assertEquals({ run.epoch, run.stopped, run.best.epoch, run.best.value }, { 4, "early_stop", 2, 2 })
  lu.assertEquals(dc.load(best, new().model).epoch, "2")
  os.remove(best)
  local plateau = schedules.reduce_on_plateau { lr = 0.1, factor = 0.5, patience = 1 }
  o = new { epochs = 5, schedule = plateau, monitor = "eval.x", mode = "max",
    evaluate = function() return { x = 1 } end }
  lu.assertEquals(train.fit(o).history[5].lr, 0.05)
  run = train.fit(new { epochs = 9, on_step = function(r) return r.step == 3 and "stop" or nil end })
  lu.assertEquals({ run.step, run.stopped }, { 3, "on_step" })
  run = train.fit(new { epochs = 9, on_epoch = function(r) return r.epoch == 2 and "stop" or nil end })
  lu.assertEquals({ run.epoch, run.stopped }, { 2, "on_epoch" })
end

function TestFit:test_batches_of_a_function()
  local seen = {}
  local o = new { epochs = 2, batch = false, data = function(epoch)
    local i = 0
    return function()
      i = i + 1
      seen[#seen + 1] = i <= 2 and epoch * 10 + i or nil
      if i <= 2 then
        return X[{ { i, i + 3 } }], Y[{ { i, i + 3 } }]
      end
    end
  end }
  o.batch = nil
  lu.assertEquals(train.fit(o).step, 4)
  lu.assertEquals(seen, { 11, 12, 21, 22 })
end

TestRuns = {}

local interrupted = setmetatable({ code = "DC0708" }, { __tostring = function() return "interrupted" end })

-- Whole, in two calls, and with an interruption in the middle of an epoch, wherever it comes: the same bits.
function TestRuns:test_go_on()
  local function make(path, more)
    local o = new { epochs = 3, checkpoint = path, every = 3, evaluate = data.set(X, Y), csv = path .. ".csv" }
    o.average = optim.SWA(o.model)
    for key, value in pairs(more or {}) do
      o[key] = value
    end
    return o
  end
  local a, b, c, d = files(4)
  local whole = make(a)
  local run = train.fit(whole)
  local second = make(b, { epochs = 3 })
  train.fit(make(b, { epochs = 1 }))
  local again = train.fit(second)
  lu.assertEquals(weights(second), weights(whole))
  lu.assertEquals(again.history, run.history)
  lu.assertEquals(check.read(b .. ".csv"), check.read(a .. ".csv"))
  for _, path in ipairs { c, d } do
    local broken = make(path)
    if path == c then
      broken.on_step = function(r) if r.step == 8 then error(interrupted, 0) end end
    else -- before the step: a batch has been given out and no step taken
      local count, loss = 0, broken.optimizer
      broken.schedule = function(step)
        count = count + 1
        if step == 9 then error(interrupted, 0) end
        return loss.lr:item()
      end
    end
    fails("interrupted", train.fit, broken)
    local on = make(path)
    on.schedule = broken.schedule and function() return 0.02 end
    local reference = on.schedule and make(files(1), { schedule = on.schedule }) or whole
    if on.schedule then
      train.fit(reference)
      os.remove(reference.checkpoint)
      os.remove(reference.csv)
    end
    train.fit(on)
    lu.assertEquals(weights(on), weights(reference))
  end
  for _, path in ipairs { a, b, c, d } do
    os.remove(path)
    os.remove(path .. ".csv")
  end
end

function TestRuns:test_logs()
  local csv, jsonl, folder = files(3)
  train.fit(new { epochs = 2, csv = csv, jsonl = jsonl, tensorboard = folder, log_every = 5,
    histograms = 2 })
  local lines = {}
  for line in io.lines(csv) do
    lines[#lines + 1] = line
  end
  lu.assertEquals({ #lines, lines[1] }, { 3, "epoch,step,loss,accuracy" })
  lu.assertStrContains(lines[3], "2,10,0.")
  local text = check.read(jsonl)
  lu.assertStrMatches(text:match "^[^\n]*", '{"step": 5, "step.loss": 0%.%d+}')
  lu.assertStrContains(text, '{"epoch": 2, "step": 10, "loss": 0.')
  for name in io.popen("ls " .. folder):lines() do
    local events = check.read(folder .. "/" .. name)
    lu.assertStrContains(events, "step.loss")
    lu.assertStrContains(events, "parameters/1.weight")
    lu.assertStrContains(events, "Variable")
    os.remove(folder .. "/" .. name)
  end
  os.remove(folder)
  os.remove(csv)
  os.remove(jsonl)
end

-- A run that goes on has a file of its own, which hides what is behind the checkpoint; the graph is in the first one.
function TestRuns:test_goes_on_in_tensorboard()
  local path, folder = files(2)
  local texts = {}
  for epochs = 1, 2 do
    train.fit(new { epochs = epochs, checkpoint = path, tensorboard = folder })
  end
  for name in io.popen("ls " .. folder):lines() do
    texts[#texts + 1] = check.read(folder .. "/" .. name)
    os.remove(folder .. "/" .. name)
  end
  lu.assertEquals(#texts, 2)
  local session = "\x10\x06\x3a\x02\x08\x01" -- purges from step 6
  lu.assertNil(texts[1]:find(session, 1, true))
  lu.assertStrContains(texts[2], session)
  lu.assertStrContains(texts[1], "Variable")
  lu.assertNil(texts[2]:find("Variable", 1, true))
  os.remove(folder)
  os.remove(path)
end

TestMistakes = {}

function TestMistakes:test_options()
  fails("train.fit: options are a table, not nil", train.fit)
  fails("is 'epochs' meant?", train.fit, new { epoch = 3 })
  fails("train.fit: either epochs or steps is needed", train.fit, new())
  fails("train.fit: either epochs or steps is needed", train.fit, new { epochs = 1, steps = 1 })
  fails("train.fit: model is a layer, not the number 3", train.fit, new { epochs = 1, model = 3 })
  fails("train.fit: optimizer is one of deepc.optim", train.fit, new { epochs = 1, optimizer = X })
  fails("train.fit: loss is a function of a batch", train.fit, new { epochs = 1, loss = X })
  fails("train.fit: data is a set, or a function", train.fit, new { epochs = 1, data = X })
  fails("train.fit: batch is a size or a table", train.fit, new { epochs = 1, batch = "10" })
  fails("train.fit: metric 'accuracy' is a function, not one of deepc.metrics", train.fit,
    new { epochs = 1, metrics = { accuracy = metrics.accuracy } })
  fails("train.fit: no metric is called 'loss'", train.fit, new { epochs = 1, metrics = { loss = metrics.Mean() } })
  fails("mode = \"min\" or \"max\" says what is better of 'eval.accuracy'", train.fit,
    new { epochs = 1, best = "x", monitor = "eval.accuracy" })
  fails("train.fit: every is for checkpoints of sets", train.fit, new { epochs = 1, every = 3 })
  fails("train.fit: resume needs a checkpoint", train.fit, new { epochs = 1, resume = true })
  fails("train.fit: early_stop is a number of epochs", train.fit, new { epochs = 1, early_stop = { min_delta = 1 } })
end

function TestMistakes:test_losses()
  local o = new { epochs = 1 }
  o.loss = function(x, y) return nn.cross_entropy(o.model(x), y) end
  fails("train.fit: metrics need what was predicted, a second result of the loss; it is nil", train.fit, o)
  o.loss = function() end
  fails("train.fit: the function of the loss returns nil", train.fit, o)
  o.loss = function(x) return o.model(x) end
  fails("train.fit: the loss is f32[batch=10, 2], a scalar is needed", train.fit, o)
  o = new { epochs = 1, monitor = "eval.loss" }
  fails("train.fit: the numbers of an epoch have no 'eval.loss'; there are 'accuracy', 'epoch', 'loss', 'step'",
    train.fit, o)
end
