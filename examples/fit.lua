-- Fits a curve: a small network learns the sine between -3 and 3, from new points in each step.
local dc = require "deepc"
local nn, optim = require "deepc.nn", require "deepc.optim"
local net = nn.Sequential { nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1) }
local opt = optim.Adam(net:parameters(), { lr = 1e-2 })
local step = dc.fn("step() -> ()", function()
  local x = dc.rand("f32[256, 1]", { low = -3, high = 3 })
  opt:step(nn.mse_loss(net(x), x:sin()))
end)
for _ in dc.progress(1000) do step() end
print(("sin(1) = %.3f, the network says %.3f"):format(math.sin(1), net(dc.tensor { { 1 } }):item()))
