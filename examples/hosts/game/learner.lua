-- What the paddles of game.c learn with, by deep Q-learning. The host calls these functions, each with a deadline.
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local courts, inputs, actions = ...
local discount = 0.9

local function network()
  return nn.Sequential { nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, actions) }
end

-- While a job runs, the parameters that it sets are its own. So there are two networks: one that is trained, and a copy
-- that plays and gives the values of what comes after, renewed between two jobs.
dc.seed(1)
local trained, copy = network(), network()
local opt = optim.Adam(trained:parameters(), { lr = 1e-3, clip_norm = 10 })

local renew = dc.fn("renew()", function()
  for i, p in ipairs(copy:parameters()) do p:set(trained:parameters()[i]) end
end)

local choose = dc.fn(("choose(seen: f32[%d, %d]) -> i32[%d]"):format(courts, inputs, courts), function(seen)
  return copy(seen):argmax(2):cast "i32"
end)

local signature = "learn(seen: f32[n, i], action: i32[n], reward: f32[n], after: f32[n, i], goes_on: f32[n]) -> f32[]"
local learn = dc.fn(signature, function(seen, action, reward, after, goes_on)
  local goal = dc.stop_gradient(reward + discount * goes_on * copy(after):max(2))
  local loss = (trained(seen):gather(action:reshape(-1, 1), 2):reshape(-1) - goal):square():mean()
  opt:step(loss)
  return loss
end)

local learner, job = {}, nil

-- The actions of all paddles, for dc_to_array.
function learner.act(seen)
  return choose(seen)
end

-- Starts a step of training; its arrays stay as they are until it has ended.
function learner.begin(...)
  job = learn:start(...)
end

-- Carries it on; its loss when it has ended, else nothing.
function learner.continue(ms)
  if not job:poll { ms = ms } then return nil end
  local loss = job:result():item()
  job = nil
  renew()
  return loss
end

-- What the first frame would wait for: every function is compiled.
function learner.prepare(seen, ...)
  renew()
  choose(seen):totable()
  learner.begin(...)
  while not learner.continue(1000) do end
end

return learner
