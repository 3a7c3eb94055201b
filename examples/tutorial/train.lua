-- Trains the network of net.lua on Fashion-MNIST and keeps it in clothes.safetensors (docs/tutorial.md).
--
--   deepc train.lua
--   deepc train.lua --epochs 10        goes on where the last run ended

local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"
local make_net = require "net"

local options = dc.options {
  about = "Trains a network that tells clothes apart.",
  { "epochs", 5, "passes over the images", min = 1 },
  { "images", 60000, "how many of the images to train on", min = 64, max = 60000 },
  { "data", "/usr/share/datasets/fashion-mnist", "where the four files are", value = "DIR" },
}

local net = make_net()
local opt = optim.Adam(net:parameters(), { lr = 1e-3 })

local step = dc.fn("step(x: u8[64, 28, 28], y: i32[64]) -> f32[]", function(x, y)
  local loss = nn.cross_entropy(net(x), y)
  opt:step(loss)
  return loss
end)

local correct = dc.fn("correct(x: u8[n, 28, 28], y: i32[n]) -> i32[]", function(x, y)
  return net(x):argmax(2):eq(y):sum()
end)

local all, test = data.fashion_mnist { dir = options.data }
local train = all:rows(dc.iota(options.images) + 1)

local checkpoint = dc.checkpoint("clothes.safetensors", { model = net, optimizer = opt, data = train })
local state = checkpoint:load() or { accuracy = 0 }

for epoch = train.epoch + 1, options.epochs do
  local total, steps = 0, 0
  for x, y in train:batches { size = 64, shuffle = true, seed = 1, last = "drop" } do
    total, steps = total + step(x, y):item(), steps + 1
  end
  local right = 0
  for x, y in test:batches { size = 500 } do
    right = right + correct(x, y):item()
  end
  state.accuracy = right / #test
  print(("epoch %d  loss %.3f  accuracy %.3f"):format(epoch, total / steps, state.accuracy))
  checkpoint:save(state)
end
