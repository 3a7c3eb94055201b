-- Writes the function that run_host calls: deepc policy.lua policy.dcfn
--
-- A network that tells points inside a circle from those outside, trained here, exported for batches of 1 and of 4.
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"

local net = nn.Sequential { nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2) }
local opt = optim.Adam(net:parameters(), { lr = 1e-2 })

local step = dc.fn("step(x: f32[n, 2], y: i32[n]) -> f32[]", function(x, y)
  local loss = nn.cross_entropy(net(x), y)
  opt:step(loss)
  return loss
end)

local inside = dc.fn("inside(x: f32[n, 2]) -> f32[n]", function(x)
  return net(x):softmax(2):slice({ [2] = { 2, 2 } }):reshape { dc.dim "n" }
end)

for i = 1, 300 do
  local x = dc.rand("f32[256, 2]", { seed = i }) * 2 - 1
  step(x, x:square():sum(2):lt(0.5):cast "i32")
end

inside:export(arg[1] or "policy.dcfn", { n = 1 }, { n = 4 })
