-- What train.fit is called with: checked, with defaults.

local schedules = require "deepc.schedules"
local _, core = ...

local read = {}
core.fit_options = read

local OP = "train.fit"

local known = {}
for name in ([[model optimizer loss data batch epochs steps evaluate evaluate_batch metrics schedule scaler autocast
  average monitor mode early_stop checkpoint every resume best csv jsonl tensorboard histograms log_every
  progress on_step on_epoch]]):gmatch "%S+" do
  known[name] = true
end

local function fail(hint, text, ...)
  core.fail("ARG", OP, text:format(...), hint)
end

read.fail = fail

local function has(v, method)
  local ok, f = pcall(function() return (type(v) == "table" or type(v) == "userdata") and v[method] end)
  return ok and type(f) == "function"
end

read.has = has

local function check_count(o, key, least)
  if o[key] ~= nil and (math.type(o[key]) ~= "integer" or o[key] < least) then
    fail(nil, "%s is an integer from %d, not %s", key, least, core.shown(o[key]))
  end
end

local function check_function(o, key)
  if o[key] ~= nil and type(o[key]) ~= "function" then
    fail(nil, "%s is a function, not %s", key, core.describe(o[key]))
  end
end

local function check_main(o)
  if not has(o.model, "named_cells") or not has(o.model, "train") then
    fail("model = net", "model is a layer, not %s", core.describe(o.model))
  elseif not has(o.optimizer, "step") or not has(o.optimizer, "named_cells") or not has(o.optimizer, "_gradients") then
    fail("optimizer = optim.Adam(net:parameters())",
      "optimizer is one of deepc.optim that takes a step with a loss, not %s", core.describe(o.optimizer))
  elseif type(o.loss) ~= "function" then
    fail("loss = function(x, y) return nn.cross_entropy(net(x), y) end",
      "loss is a function of a batch that returns the loss, not %s", core.describe(o.loss))
  elseif not has(o.data, "batches") and type(o.data) ~= "function" then
    fail("data.set(x, y)", "data is a set, or a function of the epoch that returns an iterator, not %s",
      core.describe(o.data))
  elseif (o.epochs == nil) == (o.steps == nil) then
    fail("epochs = 5, or steps = 1000", "either epochs or steps is needed")
  end
  check_count(o, "epochs", 1)
  check_count(o, "steps", 1)
  check_count(o, "every", 1)
  check_count(o, "log_every", 1)
  check_function(o, "on_step")
  check_function(o, "on_epoch")
end

-- Options of set:batches, shuffled unless they say otherwise.
local function batch_options(o, key, of, shuffle)
  local batch = o[key]
  if not has(of, "batches") then
    if batch ~= nil then
      fail(nil, "%s is for sets; a function gives its batches itself", key)
    end
    return nil
  end
  if math.type(batch) == "integer" then
    batch = { size = batch, last = shuffle and #of >= batch and "drop" or "keep" }
  elseif type(batch) ~= "table" then
    fail("batch = 64, or batch = { size = 64, shuffle = true, last = \"drop\" }",
      "%s is a size or a table of options of set:batches, not %s", key, core.describe(batch))
  end
  local copy = {}
  for name, value in pairs(batch) do
    copy[name] = value
  end
  if shuffle and copy.shuffle == nil then
    copy.shuffle = true
  end
  return copy
end

local function check_metrics(o)
  for name, metric in pairs(o.metrics or {}) do
    if type(name) ~= "string" or not (has(metric, "update") and has(metric, "result") and has(metric, "reset")) then
      fail("metrics = { accuracy = metrics.Accuracy() }", "metric '%s' is %s, not one of deepc.metrics over batches",
        tostring(name), core.describe(metric))
    elseif name == "loss" or name == "lr" or name == "epoch" or name == "step" or name:find("[.:]") then
      fail(nil, "no metric is called '%s'", name)
    end
  end
end

local function check_parts(o)
  if o.scaler ~= nil and not has(o.scaler, "step") then
    fail("scaler = optim.GradScaler()", "scaler is %s", core.describe(o.scaler))
  elseif o.average ~= nil and not has(o.average, "averaged") then
    fail("average = optim.EMA(net)", "average is %s", core.describe(o.average))
  elseif o.schedule ~= nil and type(o.schedule) ~= "function" and not has(o.schedule, "state") then
    fail("schedule = schedules.cosine { lr = 1e-3, steps = 1000 }", "schedule is a function of the step, not %s",
      core.describe(o.schedule))
  elseif o.evaluate ~= nil and not has(o.evaluate, "batches") and type(o.evaluate) ~= "function" then
    fail("evaluate = test_set", "evaluate is a set or a function that returns a table of numbers, not %s",
      core.describe(o.evaluate))
  elseif o.every and not (o.checkpoint and has(o.data, "position")) then
    fail(o.checkpoint and "a function of the epoch begins each epoch anew" or 'checkpoint = "run.safetensors"',
      "every is for checkpoints of sets")
  elseif o.resume ~= nil and type(o.resume) ~= "boolean" then
    fail(nil, "resume is true or false, not %s", core.describe(o.resume))
  elseif o.resume and not o.checkpoint then
    fail('checkpoint = "run.safetensors"', "resume needs a checkpoint")
  end
  if o.histograms == true then
    o.histograms = 1
  end
  if o.histograms ~= nil and o.histograms ~= false and (math.type(o.histograms) ~= "integer" or o.histograms < 1) then
    fail(nil, "histograms is true, or a number of epochs, not %s", core.shown(o.histograms))
  elseif o.histograms and not o.tensorboard then
    fail('tensorboard = "runs/1"', "histograms go to TensorBoard, which has no folder")
  end
  for _, key in ipairs { "checkpoint", "best", "csv", "jsonl", "tensorboard" } do
    if o[key] ~= nil and type(o[key]) ~= "string" then
      fail(nil, "%s is the name of a file, not %s", key, core.describe(o[key]))
    end
  end
end

-- What is to get better, and which way that is.
local function read_monitor(o)
  local wanted = o.best or o.early_stop or o.monitor or has(o.schedule, "state")
  local monitor = o.monitor or o.evaluate and type(o.evaluate) ~= "function" and "eval.loss" or "loss"
  if type(monitor) ~= "string" then
    fail(nil, "monitor is the name of a number of an epoch, not %s", core.describe(monitor))
  end
  local mode = o.mode or monitor:match "loss$" and "min" or nil
  if wanted and mode ~= "min" and mode ~= "max" then
    fail(nil, 'mode = "min" or "max" says what is better of \'%s\'', monitor)
  end
  local stop = o.early_stop
  if math.type(stop) == "integer" then
    stop = { patience = stop }
  end
  core.options(OP, stop, "patience", "min_delta")
  if stop then
    check_count(stop, "patience", 1)
    if not stop.patience then
      fail("early_stop = 3", "early_stop is a number of epochs, or a table with patience")
    end
  end
  return wanted and monitor, mode, stop
end

function read.options(given)
  if type(given) ~= "table" then
    fail("train.fit { model = net, optimizer = opt, loss = f, data = set, batch = 64, epochs = 5 }",
      "options are a table, not %s", core.describe(given))
  end
  local o = {}
  for key, value in pairs(given) do
    if not known[key] then
      fail(core.near(known, tostring(key)), "unknown option '%s'", tostring(key))
    end
    o[key] = value
  end
  check_main(o)
  check_metrics(o)
  check_parts(o)
  o.batch = batch_options(o, "batch", o.data, true)
  if o.evaluate and o.evaluate_batch == nil and has(o.evaluate, "batches") then
    o.evaluate_batch = o.batch and o.batch.size or 256
  end
  o.evaluate_batch = o.evaluate and batch_options(o, "evaluate_batch", o.evaluate, false)
  o.monitor, o.mode, o.early_stop = read_monitor(o)
  o.metrics = o.metrics or {}
  o.schedules = schedules
  return o
end

return read
