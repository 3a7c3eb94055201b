-- An autoencoder: 16 numbers through a waist of 2 and back, with a mean squared error by hand.
--
-- The rows lie on a curved sheet of two dimensions, so two numbers are enough to tell them apart. The
-- same training is done with SGD and with Adam.
--
--   deepc autoencoder.lua
--   deepc autoencoder.lua --plot losses.svg

local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local plot = require "deepc.plot"

local options = dc.options {
  about = "Sends 16 numbers through a waist of 2.",
  { "plot", nil, "draws the losses of both, .svg or .png", value = "FILE" },
}

local place = dc.rand("f32[512, 2]", { low = -1, high = 1, seed = 1 })
local rows = place:matmul(dc.randn("f32[2, 16]", { seed = 2 })):tanh()

-- Layers may be functions.
local tanh = dc.tanh

local losses = {} -- a list for each optimiser

local function train(class, settings)
  dc.seed(0) -- both start with the same weights
  local encode = nn.Sequential { nn.Linear(16, 32), tanh, nn.Linear(32, 2) }
  local decode = nn.Sequential { nn.Linear(2, 32), tanh, nn.Linear(32, 16) }
  local net = nn.Sequential { encode, decode }
  local opt = class(net:parameters(), settings)
  local step = dc.fn("step(x: f32[512, 16]) -> f32[]", function(x)
    local off = net(x) - x
    local loss = (off * off):mean()
    opt:step(loss)
    return loss
  end)
  local loss, list = nil, {}
  for i = 1, 500 do
    loss = step(rows)
    list[i] = options.plot and loss:item()
  end
  losses[#losses + 1] = { y = list, name = tostring(opt) }
  print(("%-10s mean squared error %.5f"):format(tostring(opt), loss:item()))
end

print(("%-10s mean squared error %.5f"):format("the mean", (rows * rows):mean():item()))
train(optim.SGD, { lr = 0.1, momentum = 0.9 })
train(optim.Adam, { lr = 1e-2 })

if options.plot then
  plot.lines(options.plot, losses, { title = "Two optimisers, one autoencoder", x = "step", y = "loss", log = true })
end
