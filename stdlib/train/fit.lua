-- train.fit: epochs of steps, evaluation, checkpoints, logs.
--
-- The step is one typed function, made of the script's loss for the types of the first batch: loss, gradients, update,
-- metrics. Nothing of a step is read back but what a callback, a log or the progress bar asks for. How many steps
-- the parameters have seen is a state that the step sets with them, so that an interruption cannot come between.
-- Where ranks share the batches of a set, the step is about whole batches: their first axis is split.

local dc = require "deepc"
local metrics = require "deepc.metrics"
local runlog = require "deepc.runlog"
local tensorboard = require "deepc.tensorboard"
local train = require "deepc.train.class"
require "deepc.train.options"
require "deepc.train.logs"
local _, core = ...

local read, logs = core.fit_options, core.logs
local has, fail = read.has, read.fail

local OP = "train.fit"

---A run of train.fit, as callbacks see it and as it is returned.
---@class deepc.train.Run
---@field epoch integer how many are done
---@field step integer
---@field lr number? of the schedule
---@field history table<string, number>[] the numbers of each epoch: loss, metrics, eval.loss ...
---@field best { epoch: integer, value: number }? by the option monitor
---@field loss deepc.Tensor of the last step
---@field stopped string? why it ended early

-- ---- typed functions ----

local names = { "x", "y", "mask", "a4" }

-- How many ranks share the batches of a set, and how the first axis of a batch is split then: " @ data".
local function sharing(of, options)
  local has_batches = options and has(of, "batches")
  local _, places, over = 0, 1, nil
  if has_batches then
    _, places, over = core.share_of_batches(options)
  end
  return places, places > 1 and " @ " .. over or ""
end

-- A type for each value of a batch, whose first axis may have any size.
local function signature(name, values, split, more, results)
  local list, rows = {}, values[1].shape[1]
  for i, v in ipairs(values) do
    local sizes = v.shape
    sizes[1] = sizes[1] == rows and "batch" .. split or sizes[1]
    list[i] = ("%s: %s[%s]"):format(names[i], v.dtype, table.concat(sizes, ", "))
  end
  return ("%s(%s%s)%s"):format(name, table.concat(list, ", "), more, results)
end

-- A function with so many named parameters in front of `last`, as a signature wants it.
local function with_names(n, last, f)
  local list = table.concat(names, ", ", 1, n) .. last
  return load(("local f = ... return function(%s) return f(%s) end"):format(list,
    last ~= "" and "lr, " .. table.concat(names, ", ", 1, n) or "nil, " .. table.concat(names, ", ", 1, n)),
    "=deepc/train/batch", "t", {})(f)
end

local function check_loss(loss)
  if not core.kind(loss) then
    fail("return nn.cross_entropy(net(x), y)", "the function of the loss returns %s", core.describe(loss))
  elseif #loss.shape > 0 then
    core.fail("DIMS", OP, ("the loss is %s, a scalar is needed"):format(core.describe(loss)), ":mean()", "loss", loss)
  end
end

-- Takes a batch into the mean of losses, with as much weight as it has rows, and into metrics.
local function measure(self, loss, predicted, x, y, mask)
  check_loss(loss)
  local rows = dc.stop_gradient(loss):cast("f32"):reshape(1):expand(#x)
  self.mean:update(rows, nil, mask and { mask = mask } or nil)
  if next(self.o.metrics) == nil then
    return
  elseif not core.kind(predicted) then
    fail("return loss, logits", "metrics need what was predicted, a second result of the loss; it is %s",
      core.describe(predicted))
  end
  for _, name in ipairs(self.metric_names) do
    self.o.metrics[name]:update(dc.stop_gradient(predicted), y, mask and { mask = mask } or nil)
  end
end

local function make_step(self, values)
  local o, loss_of = self.o, self.loss_of
  local function step(lr, x, y, mask, ...)
    local loss, predicted = loss_of(x, y, mask, ...)
    check_loss(loss)
    local options = lr and { lr = lr } or nil
    if o.scaler then
      o.scaler:step(o.optimizer, loss, options)
    else
      o.optimizer:step(loss, options)
    end
    if o.average then
      o.average:update()
    end
    measure(self, loss, predicted, x, y, self.masked and mask or nil)
    self.steps:set(self.steps + 1)
    return loss
  end
  local lr = o.schedule and ", lr" or ""
  local _, split = sharing(o.data, o.batch)
  return dc.fn(signature("step", values, split, lr ~= "" and ", lr: f32[]" or "", ""), with_names(#values, lr, step))
end

-- How many rows the last batch of an evaluation has, where these are less than others have and it is known.
local function rest_of(self, most)
  local set, o = self.o.evaluate, self.o.evaluate_batch
  local known, rows = pcall(function() return o.draws or #set end)
  local rest = o.last == "keep" and known and rows % o.size or 0
  return rest > 0 and rest < most and rest or nil
end

-- Compiled for whole batches and for the last one. A bounded dim would be one compilation, but no number to a loss that
-- compares a size.
local function make_evaluation(self, values)
  local function evaluate(_, x, y, mask, ...)
    local loss, predicted = self.loss_of(x, y, mask, ...)
    measure(self, loss, predicted, x, y, self.evaluation_masked and mask or nil)
  end
  local places, split = sharing(self.o.evaluate, self.o.evaluate_batch)
  local most = #values[1] * places
  local rest = rest_of(self, most)
  return dc.fn(signature("evaluate", values, split, "", ""), with_names(#values, "", evaluate),
    rest and { batch = { most, rest } } or nil)
end

-- ---- numbers of an epoch ----

local function reset(self)
  self.mean:reset()
  for _, name in ipairs(self.metric_names) do
    self.o.metrics[name]:reset()
  end
end

-- Results of metrics that are numbers, into a row; then they begin anew.
local function take_results(self, row, prefix)
  local function put(name, value)
    if #value.shape == 0 then
      row[prefix .. name] = value:item()
    end
  end
  put("loss", self.mean:result())
  for _, name in ipairs(self.metric_names) do
    put(name, self.o.metrics[name]:result())
  end
  reset(self)
end

local function batches(set, options, epoch)
  local o = {}
  for key, value in pairs(options) do
    o[key] = value
  end
  if epoch and math.type(set.epoch) == "integer" then
    o.epoch = epoch
  end
  return set:batches(o)
end

local function evaluate_set(self, row)
  for a, b, c, d in batches(self.o.evaluate, self.o.evaluate_batch) do
    local values = { a, b, c, d }
    self.evaluation = self.evaluation or make_evaluation(self, values)
    self.evaluation(table.unpack(values))
  end
  take_results(self, row, "eval.")
end

local function evaluate(self, row)
  local o = self.o
  if not o.evaluate then
    return
  end
  local function run()
    o.model:eval()
    local back <close> = setmetatable({}, { __close = function() o.model:train() end }) -- luacheck: ignore
    if type(o.evaluate) == "function" then
      for name, value in pairs(o.evaluate(self.run) or {}) do
        row["eval." .. tostring(name)] = core.kind(value) and value:item() or value
      end
    else
      evaluate_set(self, row)
    end
  end
  if o.average then
    o.average:averaged(run)
  else
    run()
  end
end

-- ---- logs ----

local function open_logs(self, values)
  local o = self.o
  self.logs = {}
  if core.world() > 0 then -- the first rank writes them
    return
  end
  for _, kind in ipairs { "csv", "jsonl" } do
    if o[kind] then
      self.logs[#self.logs + 1] = logs.open(OP, kind, o[kind], values["log." .. kind])
    end
  end
  if o.tensorboard then
    self.events = tensorboard.writer(o.tensorboard, self.run.step > 0 and { purge_step = self.run.step + 1 } or nil)
    self.drawn = self.run.step > 0 -- the graph of the step: a run has one
  end
end

local function column_order(row)
  local list = {}
  for name in pairs(row) do
    list[#list + 1] = name
  end
  local first = { epoch = 1, step = 2, loss = 3 }
  table.sort(list, function(a, b)
    local x, y = first[a] or 9, first[b] or 9
    if x ~= y then
      return x < y
    end
    return a < b
  end)
  return list
end

-- Of the parameters, each so many epochs. Gradients are never in memory: they are part of the step.
local function write_histograms(self)
  local o, run = self.o, self.run
  if o.histograms and run.epoch % o.histograms == 0 then
    for _, named in ipairs(o.model:named_cells()) do
      if core.cell_kind(named[2]) == "param" then
        self.events:histogram("parameters/" .. named[1], named[2], run.step)
      end
    end
  end
end

local function write_row(self, row)
  local columns = column_order(row)
  for _, log in ipairs(self.logs) do
    log:write(columns, row)
  end
  for _, name in ipairs(columns) do
    if self.events and name ~= "step" and type(row[name]) == "number" then
      self.events:scalar(name, row[name], row.step)
    end
  end
  if self.events then
    write_histograms(self)
    self.events:flush()
  end
end

-- Losses of single steps go to TensorBoard, and to JSON lines.
local function write_step(self, loss)
  local value = loss:item()
  if self.events then
    self.events:scalar("step.loss", value, self.run.step)
    if self.run.lr then
      self.events:scalar("step.lr", self.run.lr, self.run.step)
    end
  end
  for _, log in ipairs(self.logs) do
    if log.kind == "jsonl" then
      log:write({ "step", "step.loss", "step.lr" },
        { step = self.run.step, ["step.loss"] = value, ["step.lr"] = self.run.lr })
    end
  end
end

-- ---- checkpoints ----

local function parts_of(self)
  local o = self.o
  return { model = o.model, optimizer = o.optimizer, scaler = o.scaler, average = o.average,
    data = has(o.data, "position") and o.data or nil,
    loop = { steps = self.steps, loss = self.mean, metrics = next(o.metrics) and o.metrics or nil } }
end

local function save(self)
  local run = self.run
  local values = { epoch = run.epoch, step = run.step, base = self.base, bad = self.bad, lr = run.lr,
    ["best.epoch"] = run.best and run.best.epoch, ["best.value"] = run.best and run.best.value }
  for i, row in ipairs(run.history) do
    for name, value in pairs(row) do
      values[("history.%d.%s"):format(i, name)] = value
    end
  end
  if has(self.o.schedule, "state") then
    for key, value in pairs(self.o.schedule:state()) do
      values["plateau." .. key] = value
    end
  end
  if self.events then
    self.events:flush()
  end
  for _, log in ipairs(self.logs) do
    values["log." .. log.kind] = log.size
  end
  self.checkpoint:save(values)
end

-- What was saved, or an empty table where there is nothing.
local function resume(self)
  local values = self.checkpoint and self.o.resume ~= false and self.checkpoint:load()
  if not values then
    return {}
  end
  local run = self.run
  run.epoch, run.step, run.lr, self.base, self.bad = values.epoch, values.step, values.lr, values.base, values.bad
  run.best = values["best.epoch"] and { epoch = values["best.epoch"], value = values["best.value"] } or nil
  local plateau = {}
  for key, value in pairs(values) do
    local i, name = key:match "^history%.(%d+)%.(.*)$"
    local part = key:match "^plateau%.(.*)$"
    if i then
      i = math.tointeger(tonumber(i))
      run.history[i] = run.history[i] or {}
      run.history[i][name] = value
    elseif part then
      plateau[part] = value
    end
  end
  if has(self.o.schedule, "state") and next(plateau) then
    self.o.schedule:restore(plateau)
  end
  return values
end

-- After Ctrl-C: as if the batch that was interrupted had not been given out.
local function save_interrupted(self)
  local run, at = self.run, self.position
  if at then
    run.step = self.steps:item() -- one more, if the step had been taken
    at.of.batch = at.of.batch + run.step - at.step
    self.o.data:restore(at.of)
  elseif self.inside then
    return -- in an evaluation, or of a function that begins each epoch anew: the checkpoint before counts
  end
  save(self)
end

-- ---- epochs ----

local function finished(self)
  local o, run = self.o, self.run
  return run.stopped ~= nil or o.epochs and run.epoch >= o.epochs or o.steps and run.step >= o.steps
end

local function shown(self)
  local row = { loss = self.mean:result() }
  for _, name in ipairs(self.metric_names) do
    local value = self.o.metrics[name]:result()
    row[name] = #value.shape == 0 and value or nil
  end
  return row
end

local function source(self, epoch)
  local o = self.o
  if type(o.data) == "function" then
    return o.data(epoch)
  end
  return batches(o.data, o.batch, self.base + epoch)
end

-- Where the set stands now: behind the batch whose step was taken.
local function note_position(self)
  local position = has(self.o.data, "position") and self.o.data:position() or nil
  self.position = position and { of = position, step = self.run.step }
end

local function one_step(self, a, b, c, d)
  local o, run = self.o, self.run
  local values = { a, b, c, d }
  self.step = self.step or make_step(self, values)
  if type(o.schedule) == "function" then
    run.lr = o.schedule(run.step + 1)
  elseif o.schedule then
    run.lr = o.schedule.lr
  end
  if run.lr then
    values[#values + 1] = run.lr
  end
  run.loss = self.step(table.unpack(values))
  run.step = run.step + 1
  if self.events and not self.drawn then
    self.drawn = true
    self.events:graph(self.step)
  end
  if o.log_every and run.step % o.log_every == 0 then
    write_step(self, run.loss)
  end
  if o.on_step and o.on_step(run) == "stop" then
    run.stopped = "on_step"
  end
end

-- Is what is monitored better than it was? Keeps the best.
local function compare(self, row)
  local o, run = self.o, self.run
  local value = row[o.monitor]
  if type(value) ~= "number" then
    local list = {}
    for name in pairs(row) do
      list[#list + 1] = "'" .. name .. "'"
    end
    table.sort(list)
    fail(nil, "the numbers of an epoch have no '%s'; there are %s", o.monitor, table.concat(list, ", "))
  end
  local by = o.early_stop and o.early_stop.min_delta or 0
  local best = run.best and run.best.value
  local better = value == value and (not best or o.mode == "min" and value < best - by
    or o.mode == "max" and value > best + by)
  if better then
    run.best, self.bad = { epoch = run.epoch, value = value }, 0
    if o.best then
      local function write()
        dc.save(o.best, o.model, { epoch = tostring(run.epoch), [o.monitor] = core.number("%.9g", value) })
      end
      if o.average then
        o.average:averaged(write)
      else
        write()
      end
    end
  else
    self.bad = self.bad + 1
    if o.early_stop and self.bad >= o.early_stop.patience then
      run.stopped = "early_stop"
    end
  end
  if has(o.schedule, "state") then
    o.schedule:step(value)
  end
end

local function end_epoch(self)
  local o, run = self.o, self.run
  local row = { step = run.step, lr = run.lr }
  take_results(self, row, "")
  evaluate(self, row)
  run.epoch = run.epoch + 1
  row.epoch = run.epoch
  run.history[run.epoch] = row
  if o.monitor then
    compare(self, row)
  end
  write_row(self, row)
  if runlog.on() then
    runlog.epoch(row)
  end
  if o.on_epoch and o.on_epoch(run) == "stop" then
    run.stopped = run.stopped or "on_epoch"
  end
end

local function show_of(progress)
  if progress == false then
    return "off"
  elseif progress ~= true then
    return progress
  end
end

-- One function for what `for` would call.
local function as_function(iterator, state, control)
  if state == nil and control == nil then
    return iterator
  end
  return function()
    local values = table.pack(iterator(state, control))
    control = values[1]
    return table.unpack(values, 1, values.n)
  end
end

local function one_epoch(self)
  local o, run = self.o, self.run
  local title = ("epoch %d"):format(run.epoch + 1) .. (o.epochs and ("/%d"):format(o.epochs) or "")
  local loop = as_function(source(self, run.epoch + 1))
  self.inside = true
  note_position(self)
  for a, b, c, d in dc.progress(loop, { title = title, metrics = function() return shown(self) end,
    show = show_of(o.progress) }) do
    one_step(self, a, b, c, d)
    note_position(self)
    if o.every and run.step % o.every == 0 then
      save(self)
    end
    if run.stopped or o.steps and run.step >= o.steps then
      break
    end
  end
  self.position = nil
  end_epoch(self)
  self.inside = false
end

local function run_epochs(self)
  while not finished(self) do
    one_epoch(self)
    if self.checkpoint then
      save(self)
    end
  end
end

-- What a run counts lies where the model does.
local function place(self)
  local o = self.o
  local device = core.device_of(o.model)
  self.steps:move(device)
  self.mean:to(device)
  for _, metric in pairs(o.metrics) do
    metric:to(device)
  end
  for _, part in pairs { scaler = o.scaler, average = o.average } do
    part:to(device)
  end
end

local function new(o)
  local self = { o = o, run = { epoch = 0, step = 0, history = {} }, bad = 0,
    base = math.type(has(o.data, "batches") and o.data.epoch or nil) == "integer" and o.data.epoch or 0,
    steps = dc.state "i32[]", mean = metrics.Mean(), metric_names = {}, loss_of = o.loss,
    masked = o.batch and o.batch.last == "pad",
    evaluation_masked = o.evaluate_batch and o.evaluate_batch.last == "pad" }
  for name in pairs(o.metrics) do
    self.metric_names[#self.metric_names + 1] = name
  end
  table.sort(self.metric_names)
  if o.autocast then
    self.loss_of = dc.autocast(o.autocast, o.loss)
  end
  place(self)
  self.checkpoint = o.checkpoint and dc.checkpoint(o.checkpoint, parts_of(self))
  return self
end

---Trains a model. `loss(x, y)` returns the loss of a batch, and what was predicted where there are metrics;
---gradients, update and metrics are one typed function with it, made for the types of the first batch.
---
---    train.fit { model = net, optimizer = opt, loss = loss, data = set, batch = 64, epochs = 5 }
---
---Options:
---
---* model, optimizer, loss: the loss is called with what a batch has: x, y, with `last = "pad"` a mask
---* data, batch: a set and a size, or options of set:batches, shuffled unless they say otherwise; or a function
---  of the epoch that returns an iterator
---* epochs, or steps, with which the last epoch ends where they are done
---* evaluate, evaluate_batch: a set, after each epoch, in evaluation mode; or a function that returns a table of
---  numbers
---* metrics: by name, metrics over batches, updated with the second result of the loss and y
---* schedule: a function of the step that gives the rate, or schedules.reduce_on_plateau
---* scaler, autocast, average: an optim.GradScaler; "bf16" or "f16"; an optim.EMA or SWA, with which it evaluates
---* monitor, mode: the number of an epoch that is to get better, "eval.loss" or "loss" unless given; "min" or "max"
---* early_stop: so many epochs without getting better, or { patience, min_delta }
---* checkpoint, every, resume: a file for all that is needed to go on with the same bits, written after each epoch
---  and every so many steps; the run goes on from one that is there, unless resume = false
---* best: a file for the model of the best epoch
---* csv, jsonl, tensorboard, log_every: logs of epochs, and of the loss of each n-th step, which the first rank writes
---* histograms: true, or a number of epochs after which those of the parameters go to TensorBoard
---* progress: false, "bar" or "lines", as dc.progress shows itself
---* on_step, on_epoch: called with the run; "stop" ends it
---
---Ctrl-C, with a checkpoint, saves and then ends as ever: the run goes on with the batch that was interrupted.
---
---Errors: DC0101 for options that do not fit; those of the loss.
---@param options table<string, any>
---@return deepc.train.Run
function train.fit(options)
  core.refuse_tracing(OP)
  local self = new(read.options(options))
  self.o.model:train()
  open_logs(self, resume(self))
  if not self.checkpoint then
    run_epochs(self)
  else
    local ok, err = pcall(run_epochs, self)
    if not ok then
      if type(err) == "table" and err.code == "DC0708" then
        save_interrupted(self)
      end
      error(err, 0)
    end
  end
  if self.events then
    self.events:close()
  end
  return self.run
end

---Prints the numbers of the last epoch: for `on_epoch`. Of several ranks the first one does.
---
---    train.report { epoch = 1, step = 10, history = { { epoch = 1, step = 10, loss = 0.5 } } }
---@param run deepc.train.Run
function train.report(run)
  local row = type(run) == "table" and type(run.history) == "table" and run.history[#run.history]
  if not row then
    core.fail("ARG", "train.report", "a run is needed, not " .. core.describe(run), "on_epoch = train.report")
  end
  local parts = { ("epoch %d"):format(run.epoch) }
  for _, name in ipairs(column_order(row)) do
    if name ~= "epoch" and name ~= "step" then
      parts[#parts + 1] = name .. " " .. core.number("%.4g", row[name])
    end
  end
  if core.speaks() then
    print(table.concat(parts, "  "))
  end
end
