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

---Times a factor after every so many steps, or after those in a list.
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

---Times a factor after each step.
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

---From one rate at the first step to another one after so many, in equal parts; then that one.
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
---(Loshchilov and Hutter, 2017). With `restart` it begins anew every `steps`.
---
---    schedules.cosine { lr = 1e-3, steps = 1000, final = 1e-5 }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param options { lr: number, steps: integer, final?: number, restart?: boolean } final is 0
---@return deepc.Schedule
function schedules.cosine(options)
  local op = "cosine"
  local o = read(op, options, "lr", "steps", "final", "restart")
  local lr, steps, final, restart = o.lr, o.steps, o.final or 0, o.restart
  check_rate(op, "lr", lr)
  check_rate(op, "final", final)
  check_steps(op, "steps", steps)
  return make(op, function(done)
    local at = restart and done % steps or math.min(done, steps)
    return final + (lr - final) * (1 + math.cos(math.pi * at / steps)) / 2
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

---Schedules one after the other, each for so many steps and from its first step; the last for ever.
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

return core.module("deepc.schedules", schedules)
