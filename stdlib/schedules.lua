-- Learning rates by the number of the step: plain functions of an integer from 1, the same for the same
-- step whatever was asked before. So training that is resumed goes on as if it had not stopped.

local _, core = ...

---Learning rates as functions of the number of the step, from 1. They know nothing of an optimiser:
---`step(x, y, rate(i))` passes one to a typed function, `opt.lr = rate(i)` sets it, and neither compiles
---anything again.
---
---    local schedules = require "deepc.schedules"
---    local rate = schedules.warmup(100, schedules.cosine { lr = 1e-3, steps = 1000 })
---    print(rate(1), rate(100), rate(1100))
---@class deepc.schedules
local schedules = {}

---The rate at a step.
---@alias deepc.Schedule fun(step: integer): number

-- ---- reading ----

local function fail(op, text, ...)
  core.fail("ARG", op, text:format(...))
end

local function check_rate(op, key, value)
  if type(value) ~= "number" or not (value >= 0 and value < math.huge) then
    fail(op, "%s is a number from 0, not %s", key, core.shown(value))
  end
end

local function check_steps(op, key, value)
  if math.type(value) ~= "integer" or value < 1 then
    fail(op, "%s is a positive integer, not %s", key, core.shown(value))
  end
end

local function check_schedule(op, value)
  if type(value) ~= "function" then
    fail(op, "a schedule is a function of the step, not %s", core.describe(value))
  end
end

local function read(op, options, ...)
  if type(options) ~= "table" then
    fail(op, "options are a table, not %s", core.describe(options))
  end
  core.options(op, options, ...)
  return options
end

-- The function of a schedule, entered through C; at(done) gives the rate after so many steps.
local function make(op, at)
  return core.entries({ at = function(step)
    if math.type(step) ~= "integer" or step < 1 then
      fail(op, "steps are integers from 1, not %s", core.shown(step))
    end
    local rate = at(step - 1)
    return rate
  end }).at
end

-- ---- schedules ----

---The same rate at each step.
---
---    schedules.constant(1e-3)
---@param lr number
---@return deepc.Schedule
function schedules.constant(lr)
  check_rate("constant", "lr", lr)
  return make("constant", function() return lr end)
end

---Times a factor after every so many steps, or after those in a list (StepLR and MultiStepLR of PyTorch).
---
---    schedules.step { lr = 0.1, every = 1000, factor = 0.5 }
---    schedules.step { lr = 0.1, after = { 3000, 4000 } }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param options { lr: number, every?: integer, after?: integer[], factor?: number } factor is 0.1
---@return deepc.Schedule
function schedules.step(options)
  local op = "step"
  local o = read(op, options, "lr", "every", "after", "factor")
  local lr, every, after, factor = o.lr, o.every, o.after, o.factor or 0.1
  check_rate(op, "lr", lr)
  check_rate(op, "factor", factor)
  if (every == nil) == (after == nil) then
    fail(op, "either every = n or after = { n, ... } is needed")
  elseif every then
    check_steps(op, "every", every)
    return make(op, function(done) return lr * factor ^ (done // every) end)
  elseif type(after) ~= "table" then
    fail(op, "after is a list of steps, not a %s", type(after))
  end
  for i, n in ipairs(after) do
    check_steps(op, "after", n)
    if i > 1 and n <= after[i - 1] then
      fail(op, "steps in after rise: %d stands behind %d", n, after[i - 1])
    end
  end
  after = { table.unpack(after) }
  return make(op, function(done)
    local passed = 0
    for _, n in ipairs(after) do
      passed = passed + (done >= n and 1 or 0)
    end
    return lr * factor ^ passed
  end)
end

---Times a factor after each step (ExponentialLR).
---
---    schedules.exponential { lr = 0.1, factor = 0.999 }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param options { lr: number, factor: number }
---@return deepc.Schedule
function schedules.exponential(options)
  local op = "exponential"
  local o = read(op, options, "lr", "factor")
  local lr, factor = o.lr, o.factor
  check_rate(op, "lr", lr)
  check_rate(op, "factor", factor)
  return make(op, function(done) return lr * factor ^ done end)
end

---From one rate at the first step to another one after so many, in equal parts; then that one (LinearLR).
---
---    schedules.linear { from = 1e-3, to = 0, steps = 1000 }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param options { from: number, to: number, steps: integer }
---@return deepc.Schedule
function schedules.linear(options)
  local op = "linear"
  local o = read(op, options, "from", "to", "steps")
  local from, to, steps = o.from, o.to, o.steps
  check_rate(op, "from", from)
  check_rate(op, "to", to)
  check_steps(op, "steps", steps)
  return make(op, function(done)
    local share = math.min(done / steps, 1)
    return from * (1 - share) + to * share
  end)
end

---Half a wave of the cosine from a rate at the first step to `final` after so many; then that one
---(Loshchilov and Hutter, 2017; CosineAnnealingLR). With `restart` it begins anew every `steps`, or `grow` times
---as many each time (CosineAnnealingWarmRestarts with T_mult).
---
---    schedules.cosine { lr = 1e-3, steps = 1000, final = 1e-5 }
---    schedules.cosine { lr = 1e-3, steps = 1000, restart = true, grow = 2 }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param options { lr: number, steps: integer, final?: number, restart?: boolean, grow?: integer } final is 0
---@return deepc.Schedule
function schedules.cosine(options)
  local op = "cosine"
  local o = read(op, options, "lr", "steps", "final", "restart", "grow")
  local lr, steps, final, restart, grow = o.lr, o.steps, o.final or 0, o.restart, o.grow or 1
  check_rate(op, "lr", lr)
  check_rate(op, "final", final)
  check_steps(op, "steps", steps)
  check_steps(op, "grow", grow)
  if grow > 1 and not restart then
    fail(op, "grow is for restart = true")
  end
  return make(op, function(done)
    local length, at = steps, math.min(done, steps)
    if restart then
      at = done
      while grow > 1 and at >= length do
        at, length = at - length, length * grow
      end
      at = at % length
    end
    return final + (lr - final) * (1 + math.cos(math.pi * at / length)) / 2
  end)
end

---First so many steps in equal parts up to the rate that another schedule begins with, then that one
---from its first step (Goyal et al., 2017).
---
---    schedules.warmup(100, schedules.constant(1e-3))
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param steps integer
---@param schedule deepc.Schedule
---@return deepc.Schedule
function schedules.warmup(steps, schedule)
  check_steps("warmup", "steps", steps)
  check_schedule("warmup", schedule)
  return make("warmup", function(done)
    if done >= steps then
      return schedule(done - steps + 1)
    end
    return schedule(1) * (done + 1) / steps
  end)
end

---Schedules one after the other, each for so many steps and from its first step; the last for ever
---(SequentialLR).
---
---    schedules.sequence { { 100, schedules.constant(0.1) }, { 50, schedules.constant(0.01) }, schedules.constant(0) }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param list ({ [1]: integer, [2]: deepc.Schedule }|deepc.Schedule)[] steps and a schedule; the last one alone
---@return deepc.Schedule
function schedules.sequence(list)
  local op = "sequence"
  if type(list) ~= "table" or #list == 0 then
    fail(op, "a list of { steps, schedule } is needed")
  end
  local parts = {}
  for i, part in ipairs(list) do
    local last = i == #list
    if not last and type(part) ~= "table" then
      fail(op, "part %d is { steps, schedule }; only the last is a schedule alone", i)
    end
    local steps, schedule = 0, part
    if type(part) == "table" then
      steps, schedule = part[1], part[2]
      check_steps(op, ("the number of steps of part %d"):format(i), steps)
    end
    check_schedule(op, schedule)
    parts[i] = { steps, schedule }
  end
  return make(op, function(done)
    for i, part in ipairs(parts) do
      if i == #parts or done < part[1] then
        return part[2](done + 1)
      end
      done = done - part[1]
    end
  end)
end

---A power of what is left of so many steps: final + (lr - final) (1 - t / steps)^power, then final (PolynomialLR).
---
---    schedules.polynomial { lr = 0.1, steps = 1000, power = 2 }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param options { lr: number, steps: integer, power?: number, final?: number } power is 1, final 0
---@return deepc.Schedule
function schedules.polynomial(options)
  local op = "polynomial"
  local o = read(op, options, "lr", "steps", "power", "final")
  local lr, steps, power, final = o.lr, o.steps, o.power or 1, o.final or 0
  check_rate(op, "lr", lr)
  check_rate(op, "final", final)
  check_rate(op, "power", power)
  check_steps(op, "steps", steps)
  return make(op, function(done)
    return final + (lr - final) * (1 - math.min(done, steps) / steps) ^ power
  end)
end

---Up in equal parts to lr at step `warmup`, then lr (warmup / t)^0.5 (Vaswani et al., 2017).
---
---    schedules.inverse_sqrt { lr = 1e-3, warmup = 4000 }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param options { lr: number, warmup: integer }
---@return deepc.Schedule
function schedules.inverse_sqrt(options)
  local op = "inverse_sqrt"
  local o = read(op, options, "lr", "warmup")
  local lr, warmup = o.lr, o.warmup
  check_rate(op, "lr", lr)
  check_steps(op, "warmup", warmup)
  return make(op, function(done)
    return lr * math.min((done + 1) / warmup, (warmup / (done + 1)) ^ 0.5)
  end)
end

local curves = {
  cosine = function(from, to, share) return to + (from - to) / 2 * (math.cos(math.pi * share) + 1) end,
  linear = function(from, to, share) return from + (to - from) * share end,
}

---One cycle (Smith and Topin, 2018; OneCycleLR): from lr / div_factor up to lr in the first `pct_start` of the
---steps, then down to lr / div_factor / final_div_factor; with `three_phase` first down to the first rate in as
---many steps as up. Then the last rate. `anneal` is "cosine" or "linear".
---
---    schedules.one_cycle { lr = 0.1, steps = 1000 }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param options table lr, steps, pct_start = 0.3, anneal = "cosine", div_factor = 25, final_div_factor = 1e4
---@return deepc.Schedule
function schedules.one_cycle(options)
  local op = "one_cycle"
  local o = read(op, options, "lr", "steps", "pct_start", "anneal", "div_factor", "final_div_factor", "three_phase")
  local lr, steps, start = o.lr, o.steps, o.pct_start or 0.3
  local curve, div, final_div = curves[o.anneal or "cosine"], o.div_factor or 25, o.final_div_factor or 1e4
  check_rate(op, "lr", lr)
  check_steps(op, "steps", steps)
  if type(start) ~= "number" or not (start >= 0 and start <= 1) then
    fail(op, "pct_start is a part of the steps, 0 to 1, not %s", core.shown(start))
  elseif not curve then
    fail(op, 'anneal is "cosine" or "linear", not %s', core.shown(o.anneal))
  end
  for key, value in pairs { div_factor = div, final_div_factor = final_div } do
    if type(value) ~= "number" or not (value > 0) then -- luacheck: ignore
      fail(op, "%s is a positive number, not %s", key, core.shown(value))
    end
  end
  local first = lr / div
  local phases = { { start * steps - 1, first, lr } }
  if o.three_phase then
    phases[2] = { 2 * start * steps - 2, lr, first }
  end
  phases[#phases + 1] = { steps - 1, phases[#phases][3], first / final_div }
  return make(op, function(done)
    local from = 0
    done = math.min(done, steps - 1)
    for i, phase in ipairs(phases) do
      if done <= phase[1] or i == #phases then
        local share = (done - from) / (phase[1] - from)
        return curve(phase[2], phase[3], share == share and share or 1)
      end
      from = phase[1]
    end
  end)
end

---The product of schedules at the same step: the first gives rates, the others factors (ChainedScheduler).
---
---    schedules.chained { schedules.constant(0.1), schedules.exponential { lr = 1, factor = 0.9 } }
---
---Errors: DC0101 for what is no list of schedules; of the schedule, for what is no step.
---@param list deepc.Schedule[]
---@return deepc.Schedule
function schedules.chained(list)
  local op = "chained"
  if type(list) ~= "table" or #list == 0 then
    fail(op, "a list of schedules is needed")
  end
  local parts = {}
  for i, schedule in ipairs(list) do
    check_schedule(op, schedule)
    parts[i] = schedule
  end
  return make(op, function(done)
    local rate = 1
    for _, schedule in ipairs(parts) do
      rate = rate * schedule(done + 1)
    end
    return rate
  end)
end

-- ---- by what is measured ----

---A rate that falls when what is measured gets no better. It remembers what was measured, other than schedules.
---@class deepc.schedules.Plateau
---@field lr number the rate now
local Plateau = { __name = "schedules.Plateau" }
Plateau.__index = Plateau

local modes = { min = true, max = true }

---Times a factor where a measure has not improved for more than `patience` calls (ReduceLROnPlateau). Better is
---less by a part of `threshold` of the best, or by threshold itself with `absolute = true`; more with
---`mode = "max"`. After a change `cooldown` calls count for nothing; the rate stays above `min_lr`.
---
---    local plateau = schedules.reduce_on_plateau { lr = 1e-3, factor = 0.5, patience = 3 }
---    print(plateau:step(0.7))
---
---Errors: DC0101 for options that do not fit.
---@param options table lr, factor = 0.1, patience = 10, threshold = 1e-4, absolute, cooldown, min_lr, mode = "min"
---@return deepc.schedules.Plateau
function schedules.reduce_on_plateau(options)
  local op = "reduce_on_plateau"
  local o = read(op, options, "lr", "factor", "patience", "threshold", "absolute", "cooldown", "min_lr", "mode")
  local self = { lr = o.lr, factor = o.factor or 0.1, patience = o.patience or 10, threshold = o.threshold or 1e-4,
    absolute = o.absolute or false, cooldown = o.cooldown or 0, min_lr = o.min_lr or 0, mode = o.mode or "min",
    bad = 0, rest = 0 }
  for _, key in ipairs { "lr", "threshold", "min_lr" } do
    check_rate(op, key, self[key])
  end
  for _, key in ipairs { "patience", "cooldown" } do
    if math.type(self[key]) ~= "integer" or self[key] < 0 then
      fail(op, "%s is a number of calls, 0 or more, not %s", key, core.shown(self[key]))
    end
  end
  if type(self.factor) ~= "number" or not (self.factor > 0 and self.factor < 1) then
    fail(op, "factor is a number between 0 and 1, not %s", core.shown(self.factor))
  elseif not modes[self.mode] then
    fail(op, 'mode is "min" or "max", not %s', core.shown(self.mode))
  end
  self.best = self.mode == "min" and math.huge or -math.huge
  return setmetatable(self, Plateau)
end

local function check_plateau(op, self)
  if getmetatable(self) ~= Plateau then
    fail(op, "a plateau is needed, not %s", core.describe(self))
  end
end

local function is_better(self, measure)
  local by = self.absolute and self.threshold or self.threshold * math.abs(self.best)
  if self.best == math.huge or self.best == -math.huge then
    return measure == measure and measure ~= self.best
  end
  return self.mode == "min" and measure < self.best - by or self.mode == "max" and measure > self.best + by
end

---Takes note of a measure - at the end of an epoch, say - and returns the rate from now on.
---
---    opt.lr = plateau:step(loss)
---
---Errors: DC0101 for what is no number.
---@param measure number|deepc.Tensor
---@return number
function Plateau:step(measure)
  check_plateau("step", self)
  if core.kind(measure) then
    measure = measure:item()
  end
  if type(measure) ~= "number" then
    fail("step", "a number is needed, not %s", core.describe(measure))
  end
  if is_better(self, measure) then
    self.best, self.bad = measure, 0
  else
    self.bad = self.bad + 1
  end
  if self.rest > 0 then
    self.rest, self.bad = self.rest - 1, 0
  end
  if self.bad > self.patience then
    self.lr = math.max(self.lr * self.factor, self.min_lr)
    self.rest, self.bad = self.cooldown, 0
  end
  return self.lr
end

---What it remembers, for a checkpoint.
---
---    plateau:restore(plateau:state())
---@return { lr: number, best: number, bad: integer, rest: integer }
function Plateau:state()
  check_plateau("state", self)
  return { lr = self.lr, best = self.best, bad = self.bad, rest = self.rest }
end

---Goes on from what was remembered.
---
---    plateau:restore(plateau:state())
---
---Errors: DC0101 for what is no such table.
---@param state { lr: number, best: number, bad: integer, rest: integer }
function Plateau:restore(state)
  check_plateau("restore", self)
  for _, key in ipairs { "lr", "best", "bad", "rest" } do
    if type(state) ~= "table" or type(state[key]) ~= "number" then
      fail("restore", "a table of lr, best, bad and rest is needed, which plateau:state() gives")
    end
  end
  self.lr, self.best, self.bad, self.rest = state.lr, state.best, state.bad, state.rest
end

core.entries(Plateau)

return core.module("deepc.schedules", schedules)
