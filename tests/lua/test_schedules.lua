-- Learning rates by the number of the step.
local lu = require "luaunit"
local dc = require "deepc"
local optim = require "deepc.optim"
local schedules = require "deepc.schedules"
local check = require "tests.lua.check"

local fails = check.fails

local function at(schedule, steps, want)
  for i, step in ipairs(steps) do
    lu.assertAlmostEquals(schedule(step), want[i], 1e-12, "step " .. step)
  end
end

TestSchedules = {}

function TestSchedules:test_constant_step_exponential()
  at(schedules.constant(0.3), { 1, 1000 }, { 0.3, 0.3 })
  at(schedules.step { lr = 1, every = 3, factor = 0.5 }, { 1, 3, 4, 6, 7, 30 }, { 1, 1, 0.5, 0.5, 0.25, 0.5 ^ 9 })
  at(schedules.step { lr = 1, after = { 2, 5 } }, { 1, 2, 3, 5, 6, 99 }, { 1, 1, 0.1, 0.1, 0.01, 0.01 })
  at(schedules.exponential { lr = 2, factor = 0.9 }, { 1, 2, 11 }, { 2, 1.8, 2 * 0.9 ^ 10 })
end

function TestSchedules:test_linear_and_cosine()
  at(schedules.linear { from = 1, to = 0.2, steps = 4 }, { 1, 2, 3, 4, 5, 50 }, { 1, 0.8, 0.6, 0.4, 0.2, 0.2 })
  local c = schedules.cosine { lr = 1, steps = 4, final = 0.2 }
  local root = math.sqrt(2) / 2
  at(c, { 1, 2, 3, 4, 5, 50 }, { 1, 0.2 + 0.4 * (1 + root), 0.6, 0.2 + 0.4 * (1 - root), 0.2, 0.2 })
  at(schedules.cosine { lr = 1, steps = 4, restart = true }, { 1, 3, 5, 7, 9 }, { 1, 0.5, 1, 0.5, 1 })
end

function TestSchedules:test_warmup_and_sequences()
  local w = schedules.warmup(4, schedules.linear { from = 1, to = 0, steps = 10 })
  at(w, { 1, 2, 4, 5, 10, 15, 99 }, { 0.25, 0.5, 1, 1, 0.5, 0, 0 })
  local s = schedules.sequence { { 2, schedules.constant(3) }, { 3, schedules.exponential { lr = 1, factor = 0.5 } },
    schedules.constant(0) }
  at(s, { 1, 2, 3, 4, 5, 6, 60 }, { 3, 3, 1, 0.5, 0.25, 0, 0 })
  at(schedules.sequence { { 1, schedules.constant(3) } }, { 1, 2 }, { 3, 3 })
  at(schedules.warmup(2, function(step) return 10 * step end), { 1, 2, 3, 4 }, { 5, 10, 10, 20 })
end

-- The same rate for a step, whatever was asked before.
function TestSchedules:test_pure()
  local make = function()
    return schedules.warmup(3, schedules.sequence { { 5, schedules.cosine { lr = 1, steps = 5 } },
      schedules.step { lr = 0.5, every = 2 } })
  end
  local forward, backward, list = make(), make(), {}
  for step = 1, 20 do
    list[step] = forward(step)
  end
  for step = 20, 1, -1 do
    lu.assertEquals(backward(step), list[step])
  end
end

function TestSchedules:test_with_an_optimiser()
  local w = dc.param("f32[]", 0)
  local opt = optim.SGD({ w }, { lr = 1 })
  local step = dc.fn("step(lr?: f32[]) -> ()", function(lr) opt:step(-w, { lr = lr }) end)
  local rate = schedules.linear { from = 1, to = 0, steps = 4 }
  local compiled
  for i = 1, 4 do
    step(rate(i))
    compiled = compiled or dc.stats().compiles
  end
  lu.assertEquals(w:item(), 2.5)
  lu.assertEquals(dc.stats().compiles, compiled)
  for i = 1, 4 do
    opt.lr = rate(i)
    step()
  end
  lu.assertEquals(w:item(), 5)
end

-- Values are compared with PyTorch's in tests/peers.
function TestSchedules:test_ends()
  at(schedules.polynomial { lr = 1, steps = 4, power = 2, final = 0.2 }, { 1, 3, 5, 50 }, { 1, 0.4, 0.2, 0.2 })
  at(schedules.inverse_sqrt { lr = 1, warmup = 4 }, { 1, 4, 16, 400 }, { 0.25, 1, 0.5, 0.1 })
  at(schedules.one_cycle { lr = 1, steps = 10 }, { 1, 3, 10, 50 }, { 0.04, 1, 4e-6, 4e-6 })
  at(schedules.one_cycle { lr = 1, steps = 1 }, { 1, 2 }, { 4e-6, 4e-6 })
  at(schedules.cosine { lr = 1, steps = 2, restart = true, grow = 3 }, { 1, 2, 3, 6, 9 }, { 1, 0.5, 1, 0.5, 1 })
  at(schedules.chained { schedules.constant(2), schedules.linear { from = 1, to = 0, steps = 4 } }, { 1, 3 }, { 2, 1 })
end

function TestSchedules:test_plateau()
  local p = schedules.reduce_on_plateau { lr = 1, factor = 0.5, patience = 1, min_lr = 0.2 }
  local rates = {}
  for i, measure in ipairs { 3, 2, 2, dc.tensor(2), 2, 2, 0 / 0, 0 / 0, 1 } do
    rates[i] = p:step(measure)
  end
  lu.assertEquals(rates, { 1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2 })
  local q = schedules.reduce_on_plateau { lr = 9, factor = 0.5, patience = 1 }
  q:restore(p:state())
  lu.assertEquals({ q.lr, q.best, q:step(1), q:step(1) }, { 0.2, 1, 0.2, 0.1 })
end

function TestSchedules:test_mistakes()
  fails("polynomial: power is a number from 0, not -1", schedules.polynomial, { lr = 1, steps = 3, power = -1 })
  fails('one_cycle: anneal is "cosine" or "linear", not \'cos\'', schedules.one_cycle,
    { lr = 1, steps = 3, anneal = "cos" })
  fails("one_cycle: pct_start is a part of the steps, 0 to 1, not 30", schedules.one_cycle,
    { lr = 1, steps = 3, pct_start = 30 })
  fails("cosine: grow is for restart = true", schedules.cosine, { lr = 1, steps = 3, grow = 2 })
  fails("chained: a schedule is a function of the step, not the number 2", schedules.chained, { 2 })
  fails("reduce_on_plateau: factor is a number between 0 and 1, not 1", schedules.reduce_on_plateau,
    { lr = 1, factor = 1 })
  fails('reduce_on_plateau: mode is "min" or "max", not \'up\'', schedules.reduce_on_plateau, { lr = 1, mode = "up" })
  local plateau = schedules.reduce_on_plateau { lr = 1 }
  fails("step: a number is needed, not nil", plateau.step, plateau)
  fails("restore: a table of lr, best, bad and rest is needed", plateau.restore, plateau, {})
  fails("steps are integers from 1, not 0", schedules.constant(1), 0)
  fails("steps are integers from 1, not 1.5", schedules.cosine { lr = 1, steps = 2 }, 1.5)
  fails("cosine: lr is a number from 0, not nil", schedules.cosine, { steps = 3 })
  fails("cosine: steps is a positive integer, not 0", schedules.cosine, { lr = 1, steps = 0 })
  fails("cosine: unknown option 'T_max'", schedules.cosine, { lr = 1, T_max = 3 })
  fails("step: either every = n or after = { n, ... } is needed", schedules.step, { lr = 1 })
  fails("step: either every = n or after = { n, ... } is needed", schedules.step, { lr = 1, every = 1, after = { 1 } })
  fails("steps in after rise: 3 stands behind 4", schedules.step, { lr = 1, after = { 4, 3 } })
  fails("constant: lr is a number from 0, not -1", schedules.constant, -1)
  fails("warmup: a schedule is a function of the step, not the number 0.1", schedules.warmup, 3, 0.1)
  fails("warmup: steps is a positive integer", schedules.warmup, 0.5, schedules.constant(1))
  fails("linear: options are a table, not nil", schedules.linear)
  fails("sequence: part 1 is { steps, schedule }", schedules.sequence, { schedules.constant(1), schedules.constant(1) })
  fails("sequence: a list of { steps, schedule } is needed", schedules.sequence, {})
end
