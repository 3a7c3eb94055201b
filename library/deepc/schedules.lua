---@meta deepc.schedules

-- Made by scripts/reference from stdlib/schedules.lua.

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

---The same rate at each step.
---
---    schedules.constant(1e-3)
---@param lr number
---@return deepc.Schedule
function schedules.constant(lr) end

---Times a factor after every so many steps, or after those in a list.
---
---    schedules.step { lr = 0.1, every = 1000, factor = 0.5 }
---    schedules.step { lr = 0.1, after = { 3000, 4000 } }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param options { lr: number, every?: integer, after?: integer[], factor?: number } factor is 0.1
---@return deepc.Schedule
function schedules.step(options) end

---Times a factor after each step.
---
---    schedules.exponential { lr = 0.1, factor = 0.999 }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param options { lr: number, factor: number }
---@return deepc.Schedule
function schedules.exponential(options) end

---From one rate at the first step to another one after so many, in equal parts; then that one.
---
---    schedules.linear { from = 1e-3, to = 0, steps = 1000 }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param options { from: number, to: number, steps: integer }
---@return deepc.Schedule
function schedules.linear(options) end

---Half a wave of the cosine from a rate at the first step to `final` after so many; then that one
---(Loshchilov and Hutter, 2017). With `restart` it begins anew every `steps`.
---
---    schedules.cosine { lr = 1e-3, steps = 1000, final = 1e-5 }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param options { lr: number, steps: integer, final?: number, restart?: boolean } final is 0
---@return deepc.Schedule
function schedules.cosine(options) end

---First so many steps in equal parts up to the rate that another schedule begins with, then that one
---from its first step (Goyal et al., 2017).
---
---    schedules.warmup(100, schedules.constant(1e-3))
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param steps integer
---@param schedule deepc.Schedule
---@return deepc.Schedule
function schedules.warmup(steps, schedule) end

---Schedules one after the other, each for so many steps and from its first step; the last for ever.
---
---    schedules.sequence { { 100, schedules.constant(0.1) }, { 50, schedules.constant(0.01) }, schedules.constant(0) }
---
---Errors: DC0101 for options that do not fit; of the schedule, for what is no step.
---@param list ({ [1]: integer, [2]: deepc.Schedule }|deepc.Schedule)[] steps and a schedule; the last one alone
---@return deepc.Schedule
function schedules.sequence(list) end

return schedules
