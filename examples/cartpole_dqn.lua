-- Deep Q-learning (Mnih et al. 2015): a network learns the value of each action, to balance a pole on a cart that is
-- pushed left or right (Barto, Sutton and Anderson 1983; the numbers are those of Gym's CartPole-v0). An episode ends
-- when the pole leans by more than 12 degrees, when the cart has gone 2.4 m, or after 200 steps; its return is the
-- number of its steps.
--
--   deepc cartpole_dqn.lua
--   deepc cartpole_dqn.lua --steps 600 --checkpoint run.safetensors
--   deepc cartpole_dqn.lua --checkpoint run.safetensors --resume
--
-- A step moves 8 carts, keeps what happened in the replay memory, draws a batch from there and updates the network, all
-- in one typed function. Targets are those of a copy of the network that stays the same for 200 steps. Training ends
-- when the mean return of 100 episodes without exploration is 199 of 200; that of 100 others, the result, is 199 to 200
-- (195 counts as solved). It takes 600 to 1200 steps, a second.

local dc = require "deepc"
local nn, optim, schedules = require "deepc.nn", require "deepc.optim", require "deepc.schedules"

local options = dc.options {
  about = "Learns to balance a pole, by deep Q-learning.",
  { "steps", nil, "of training at most (20000, with --quick 1000)", type = "integer", min = 1 },
  { "lr", 5e-4, "learning rate", min = 0 },
  { "discount", 0.99, "of a reward that comes a step later", min = 0, max = 1 },
  { "seed", 0, "of everything" },
  { "quick", false, "fewer steps" },
  { "checkpoint", nil, "written every 200 steps and at the end", value = "FILE" },
  { "resume", false, "goes on from the checkpoint", needs = "checkpoint" },
}

-- ---- the cart and the pole ----

local LIMIT = 200

-- The states 0.02 s later, f32[n, 4]: position, speed, angle, angular speed. Action 1 pushes right, 0 left.
local function advance(state, action)
  local x, v, angle, spin = state:split(4, 2)
  local force = 20 * action:cast("f32"):reshape(-1, 1) - 10
  local sin, cos = angle:sin(), angle:cos()
  local push = (force + 0.05 * spin:square() * sin) / 1.1
  local spin_rate = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos:square() / 1.1))
  local v_rate = push - 0.05 * spin_rate * cos / 1.1
  return dc.concat({ x + 0.02 * v, v + 0.02 * v_rate, angle + 0.02 * spin, spin + 0.02 * spin_rate }, 2)
end

-- 1 where the episode goes on, 0 where it ends.
local function upright(state)
  return state[{ {}, 1 }]:abs():le(2.4):logical_and(state[{ {}, 3 }]:abs():le(math.rad(12))):cast "f32"
end

local function start(count)
  return dc.rand(("f32[%d, 4]"):format(count), { low = -0.05, high = 0.05 })
end

-- ---- the network, its copy and the memory ----

local function network()
  local scale = dc.tensor { 1, 1, 5, 1 } -- angles are small
  return nn.Sequential {
    function(state) return state * scale end,
    nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2),
  }
end

dc.seed(options.seed)
local net, copy = network(), network()
local opt = optim.Adam(net:parameters(), { lr = options.lr, clip_norm = 10 })

local carts = { state = dc.state(start(8)), steps = dc.state "i32[8]" }
local memory = { -- of each transition the state, the action, the state after it, and whether the episode went on
  state = dc.state "f32[20000, 4]", action = dc.state "i32[20000]",
  after = dc.state "f32[20000, 4]", on = dc.state "f32[20000]",
}
local seen = dc.state "i32[]" -- transitions so far

local function sync()
  local parameters = net:parameters()
  for i, p in ipairs(copy:parameters()) do
    p:set(parameters[i])
  end
end

-- ---- the two functions ----

-- Moves the carts, and keeps what happened; `explore` is the probability of an action by chance.
local function move(explore)
  local best = net(carts.state):argmax(2)
  local action = dc.where(dc.rand("f32[8]"):lt(explore), dc.randint(best, { high = 2 }), best)
  local after = advance(carts.state, action)
  local on = upright(after)

  local place = (seen + dc.iota(8)) % #memory.on
  memory.state:set(memory.state:put(place, carts.state))
  memory.action:set(memory.action:put(place, action))
  memory.after:set(memory.after:put(place, after))
  memory.on:set(memory.on:put(place, on))
  seen:set(seen + 8)

  local steps = carts.steps + 1
  local over = on:eq(0):logical_or(steps:ge(LIMIT))
  carts.state:set(dc.where(over:reshape(-1, 1), start(8), after))
  carts.steps:set(dc.where(over, 0, steps))
end

-- The distance of Q from 1 + discount * max Q of the state after, for transitions drawn from the memory.
local function loss()
  local drawn = (dc.rand "f32[128]" * seen:minimum(#memory.on):cast "f32"):cast "i32"
  local state, action = memory.state:take(drawn, 1), memory.action:take(drawn, 1)
  local after, on = memory.after:take(drawn, 1), memory.on:take(drawn, 1)
  local wanted = 1 + options.discount * on * copy(after):max(2)
  return nn.huber_loss(net(state):gather(action:reshape(-1, 1), 2):reshape(-1), dc.stop_gradient(wanted))
end

local step = dc.fn("step(explore: f32[])", function(explore)
  move(explore)
  opt:step(loss())
end)

-- The mean return of 100 episodes, with the action that is worth more.
local evaluate = dc.fn("evaluate() -> f32[]", function()
  local last = dc.fori(LIMIT, function(_, now)
    local state = advance(now.state, net(now.state):argmax(2))
    return { state = state, on = now.on * upright(state), sum = now.sum + now.on }
  end, { state = start(100), on = dc.ones "f32[100]", sum = dc.zeros "f32[100]" })
  return last.sum:mean()
end)

-- ---- training ----

local checkpoint = options.checkpoint and dc.checkpoint(options.checkpoint,
  { model = net, copy = copy, optimizer = opt, carts = carts, memory = memory, seen = seen })
local at = options.resume and checkpoint:load() or { step = 0, mean = 0.0 }
local explore = schedules.linear { from = 1, to = 0.1, steps = 2000 }
local steps = options.steps or (options.quick and 1000 or 20000)
while at.step < steps and at.mean < 199 do
  if at.step % 200 == 0 then
    sync()
  end
  at.step = at.step + 1
  step(explore(at.step))
  if at.step % 200 == 0 then
    at.mean = evaluate():item()
    print(("step %5d  mean return %.1f"):format(at.step, at.mean))
  end
  if checkpoint and (at.step % 200 == 0 or at.step == steps) then
    checkpoint:save(at)
  end
end
print(("mean return of 100 episodes %.1f"):format(evaluate():item()))
