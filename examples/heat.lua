-- An inverse problem: the diffusivity of a ring and its temperatures at the start are found from what sensors measured
-- later. The heat equation du/dt = D d2u/dx2 is solved by finite differences in a dc.scan, and D and the initial
-- temperatures are fitted by the gradient through all of its time steps.
--
--   deepc heat.lua
--   deepc heat.lua --noise 0.05 --seed 3
--   deepc heat.lua --plot start.svg
--
-- The measurements are made here, by the same solver, with noise. The relative error of D is below 0.03; the guess that
-- the fit starts from is off by 0.7. It takes a second.

local dc = require "deepc"
local optim = require "deepc.optim"
local plot = require "deepc.plot"

local options = dc.options {
  about = "Finds a diffusivity and an initial state from measurements.",
  { "iterations", nil, "steps of the optimiser (1000, with --quick 200)", type = "integer", min = 1 },
  { "lr", 0.02, "learning rate", min = 0 },
  { "noise", 0.01, "standard deviation of the measurements", min = 0 },
  { "smooth", 1e-3, "weight of the differences of neighbours at the start", min = 0 },
  { "seed", 0, "of the noise" },
  { "quick", false, "fewer iterations" },
  { "plot", nil, "draws the temperatures at the start and what was found of them, .svg or .png", value = "FILE" },
  { "checkpoint", nil, "written every 100 iterations and at the end", value = "FILE" },
  { "resume", false, "goes on from the checkpoint", needs = "checkpoint" },
}

local POINTS, STEPS = 64, 400   -- in space and in time
local DX, DT = 1 / POINTS, 5e-4 -- D DT / DX^2 has to stay below 0.5

-- The temperatures after each time step. A ring has no ends: roll brings the neighbours.
local function simulate(start, d)
  local rate = d * (DT / DX ^ 2)
  local _, all = dc.scan(function(u)
    u = u + rate * (u:roll(1, 1) - 2 * u + u:roll(-1, 1))
    return u, u
  end, start, nil, { length = STEPS })
  return all
end

-- What 16 sensors see, every 10 steps.
local function observe(all)
  return all[{ { 10, STEPS, 10 }, { 1, POINTS, POINTS // 16 } }]
end

-- ---- the two functions ----

local log_d = dc.param("f32[]", math.log(0.03))
local start = dc.param(("f32[%d]"):format(POINTS))
local opt = optim.Adam({ log_d, start }, { lr = options.lr })

local solve = dc.fn(("solve(start: f32[%d], d: f32[]) -> f32[%d, %d]"):format(POINTS, STEPS, POINTS), simulate)

local step = dc.fn("step(measured: f32[40, 16]) -> f32[]", function(measured)
  local misfit = (observe(simulate(start, log_d:exp())) - measured):square():mean()
  opt:step(misfit + options.smooth * (start - start:roll(1, 1)):square():mean())
  return misfit
end)

-- ---- the measurements ----

dc.seed(options.seed)
local x = dc.iota(("f32[%d]"):format(POINTS)) * DX
local true_start = dc.exp(-((x - 0.3) / 0.08):square()) + 0.6 * dc.exp(-((x - 0.7) / 0.06):square())
local true_d = 0.1
local measured = observe(solve(true_start, true_d))
measured = measured + options.noise * dc.randn(measured)

-- ---- the fit ----

local checkpoint = options.checkpoint
  and dc.checkpoint(options.checkpoint, { log_d = log_d, start = start, optimizer = opt })
local at = options.resume and checkpoint:load() or { iteration = 0 }
local iterations = options.iterations or (options.quick and 200 or 1000)
for i = at.iteration + 1, iterations do
  local misfit = step(measured)
  if i % 100 == 0 then
    print(("iteration %4d  RMS of the misfit %.4f  D %.4f"):format(i, misfit:item() ^ 0.5, math.exp(log_d:item())))
  end
  if checkpoint and (i % 100 == 0 or i == iterations) then
    checkpoint:save { iteration = i }
  end
end

if options.plot then
  plot.lines(options.plot, {
    { x = x, y = true_start, name = "at the start" }, { x = x, y = start, name = "found" },
    { x = x, y = solve(true_start, true_d)[STEPS], name = "at the end" },
  }, { title = "Heat in a ring, from 16 sensors", x = "place", y = "temperature" })
end

local d = math.exp(log_d:item())
print(("initial state, RMS of the error %.4f"):format((start - true_start):square():mean():item() ^ 0.5))
print(("D %.4f, relative error %.4f"):format(d, math.abs(d / true_d - 1)))
