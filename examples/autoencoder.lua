-- An autoencoder: 16 numbers through a waist of 2 and back, with a mean squared error by hand.
--
-- The rows lie on a curved sheet of two dimensions, so two numbers are enough to tell them apart. The
-- same training is done with SGD and with Adam.

local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local place = dc.rand("f32[512, 2]", { low = -1, high = 1, seed = 1 })
local rows = place:matmul(dc.randn("f32[2, 16]", { seed = 2 })):tanh()

-- Layers may be functions.
local tanh = dc.tanh

local function train(class, options)
  dc.seed(0) -- both start with the same weights
  local encode = nn.Sequential { nn.Linear(16, 32), tanh, nn.Linear(32, 2) }
  local decode = nn.Sequential { nn.Linear(2, 32), tanh, nn.Linear(32, 16) }
  local net = nn.Sequential { encode, decode }
  local opt = class(net:parameters(), options)
  local step = dc.fn("step(x: f32[512, 16]) -> f32[]", function(x)
    local off = net(x) - x
    local loss = (off * off):mean()
    opt:step(loss)
    return loss
  end)
  local loss
  for _ = 1, 500 do
    loss = step(rows)
  end
  print(("%-10s mean squared error %.5f"):format(tostring(opt), loss:item()))
end

print(("%-10s mean squared error %.5f"):format("the mean", (rows * rows):mean():item()))
train(optim.SGD, { lr = 0.1, momentum = 0.9 })
train(optim.Adam, { lr = 1e-2 })
