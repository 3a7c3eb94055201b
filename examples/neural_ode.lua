-- A neural ordinary differential equation (Chen et al. 2018): a network is the right side f of dy/dt = f(y), fitted to
-- noisy points of a spiral. The equation is solved with Runge-Kutta steps of order 4 in a dc.scan, and the gradients go
-- back through all of its steps.
--
--   deepc neural_ode.lua
--   deepc neural_ode.lua --plot spiral.svg
--   deepc neural_ode.lua --epochs 30 --checkpoint run.safetensors
--   deepc neural_ode.lua --epochs 60 --checkpoint run.safetensors --resume
--
-- The points are made here: dy/dt = A y from (2, 0), 500 points with noise of standard deviation 0.05. The network
-- learns from stretches of 50 points. Then its equation is solved from the start of the spiral to its end, and the
-- root of the mean squared distance to the spiral without noise, the trajectory error, is 0.05. It takes five seconds.

local dc = require "deepc"
local nn, optim, schedules = require "deepc.nn", require "deepc.optim", require "deepc.schedules"
local data, plot, train = require "deepc.data", require "deepc.plot", require "deepc.train"

local options = dc.options {
  about = "Learns the differential equation of a spiral.",
  { "epochs", nil, "passes over the stretches (60, with --quick 12)", type = "integer", min = 1 },
  { "batch", 32, "stretches in a step", min = 1 },
  { "hidden", 64, "features of the network", min = 1 },
  { "lr", 5e-3, "learning rate of the first epoch, times 0.95 in each further one", min = 0 },
  { "noise", 0.05, "standard deviation of the points", min = 0 },
  { "seed", 0, "of the noise and the training" },
  { "quick", false, "fewer epochs" },
  { "plot", nil, "draws the spiral and what was learnt, .svg or .png", value = "FILE" },
  { "checkpoint", nil, "written after each epoch", value = "FILE" },
  { "resume", false, "goes on from the checkpoint", needs = "checkpoint" },
}

local POINTS, STRETCH, H = 500, 50, 0.05 -- H is the time between two points
local START = dc.tensor { { 2, 0 } }

-- ---- the equation ----

local function runge_kutta(f, y)
  local k1 = f(y)
  local k2 = f(y + H / 2 * k1)
  local k3 = f(y + H / 2 * k2)
  local k4 = f(y + H * k3)
  return y + H / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
end

-- The states after each of so many steps, f32[count, batch, 2], from states y, f32[batch, 2].
local function solve(f, y, count)
  local _, states = dc.scan(function(state)
    state = runge_kutta(f, state)
    return state, state
  end, y, nil, { length = count })
  return states
end

dc.seed(options.seed)
local net = nn.Sequential {
  nn.Linear(2, options.hidden), nn.Tanh(),
  nn.Linear(options.hidden, options.hidden), nn.Tanh(),
  nn.Linear(options.hidden, 2),
}
local opt = optim.Adam(net:parameters())

local matrix = dc.tensor { { -0.1, 1 }, { -1, -0.1 } }
local spiral = dc.fn(("spiral() -> f32[%d, 1, 2]"):format(POINTS), function()
  return solve(function(y) return y:matmul(matrix) end, START, POINTS)
end)
local learnt = dc.fn(("learnt() -> f32[%d, 1, 2]"):format(POINTS), function() return solve(net, START, POINTS) end)
local trajectory_error = dc.fn(("trajectory_error(truth: f32[%d, 1, 2]) -> f32[]"):format(POINTS), function(truth)
  return (solve(net, START, POINTS) - truth):square():sum(3):mean():sqrt()
end)

-- ---- the points ----

local truth = spiral()
local points = (truth + options.noise * dc.randn(truth)):reshape(POINTS, 2)
local stretches = data.set(points:unfold(1, STRETCH):permute(1, 3, 2)) -- one that begins at each of the points

-- ---- training ----

train.fit {
  model = net, optimizer = opt, data = stretches, batch = options.batch,
  loss = function(stretch)
    local seen = stretch:transpose(1, 2) -- f32[time, batch, 2]
    return nn.mse_loss(solve(net, seen[1], STRETCH - 1), seen[{ { 2, STRETCH } }])
  end,
  schedule = schedules.step { lr = options.lr, factor = 0.95, every = #stretches // options.batch },
  epochs = options.epochs or (options.quick and 12 or 60),
  checkpoint = options.checkpoint, resume = options.resume,
  on_epoch = train.report,
}

if options.plot then
  local function series(states, name)
    return { x = states[{ {}, 1, 1 }], y = states[{ {}, 1, 2 }], name = name }
  end
  plot.lines(options.plot, { series(truth, "spiral"), series(learnt(), "network") },
    { title = "A differential equation, learnt from 500 noisy points", width = 560, height = 480 })
end
print(("trajectory error %.4f"):format(trajectory_error(truth):item()))
