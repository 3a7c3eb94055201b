-- A residual network (He et al. 2015, "Deep residual learning for image recognition") for Fashion-MNIST.
--
--   deepc resnet.lua
--   deepc resnet.lua --checkpoint run.safetensors --every 100
--   deepc resnet.lua --checkpoint run.safetensors --every 100 --resume
--
-- Images are mirrored at random inside the typed function of the step, and the learning rate goes through one cycle
-- (Smith and Topin, 2018). Data: Debian's package dataset-fashion-mnist.
-- Result: test accuracy 0.93 after 6 epochs, 3 minutes on two cores.

local dc = require "deepc"
local nn, optim, schedules = require "deepc.nn", require "deepc.optim", require "deepc.schedules"
local data, metrics, train = require "deepc.data", require "deepc.metrics", require "deepc.train"

local options = dc.options {
  about = "Trains a residual network for Fashion-MNIST.",
  { "epochs", nil, "passes over the images to train with (6, with --quick 3)", type = "integer", min = 1 },
  { "batch", 128, "images in a step", min = 1, max = 1000 },
  { "width", nil, "channels of the first stage (32, with --quick 8)", type = "integer", min = 1 },
  { "lr", 0.1, "highest learning rate", min = 0 },
  { "seed", 0, "of the weights, the order of the images and which are mirrored" },
  { "data", "/usr/share/datasets/fashion-mnist", "where the four files are", value = "DIR" },
  { "checkpoint", nil, "keeps all that is needed to go on", value = "FILE" },
  { "every", nil, "steps between two checkpoints, besides those of each epoch", type = "integer", min = 1,
    needs = "checkpoint" },
  { "resume", false, "goes on from the checkpoint, if there is one", needs = "checkpoint" },
  { "quick", false, "a run of a few seconds" },
}
dc.seed(options.seed)

-- ---- the network ----

-- While training, every other image, drawn at random, is mirrored.
local Mirror = nn.class "Mirror"

function Mirror:forward(x) -- [n, 1, h, w]
  if not self.training then
    return x
  end
  return dc.where(dc.bernoulli(("bool[%d, 1, 1, 1]"):format(#x)), x:flip(4), x)
end

local function conv(inputs, outputs, window, stride)
  return nn.Sequential {
    nn.Conv2d(inputs, outputs, window, { stride = stride, padding = window // 2, bias = false }),
    nn.BatchNorm2d(outputs),
  }
end

-- relu(F(x) + x), where x is brought to the size of F(x) by a convolution over one pixel.
local function block(inputs, outputs, stride)
  local residual = nn.Sequential { conv(inputs, outputs, 3, stride), nn.ReLU(), conv(outputs, outputs, 3, 1) }
  local shortcut = (stride > 1 or inputs ~= outputs) and conv(inputs, outputs, 1, stride) or nil
  return nn.Sequential { nn.Residual(residual, shortcut), nn.ReLU() }
end

local width = options.width or (options.quick and 8 or 32)
local net = nn.Sequential {
  function(x) return x:reshape(#x, 1, 28, 28):cast "f32" / 255 end, -- u8[n, 28, 28], as the set has them
  Mirror(), conv(1, width, 3, 1), nn.ReLU(), nn.MaxPool2d(2),
  block(width, width, 1), block(width, 2 * width, 2), block(2 * width, 4 * width, 2),
  nn.GlobalAvgPool(), nn.Linear(4 * width, 10),
}
net:summary(("u8[%d, 28, 28]"):format(options.batch)) -- traces the network: an error in it is found here

-- ---- training ----

local images, test = data.fashion_mnist { dir = options.data }
if options.quick then
  images = images:random_split({ 2000, #images - 2000 }, { seed = options.seed })
  test = test:random_split({ 1000, #test - 1000 }, { seed = options.seed })
end

local epochs = options.epochs or (options.quick and 3 or 6)
local run = train.fit {
  model = net, optimizer = optim.SGD(net:parameters(), { momentum = 0.9, nesterov = true, weight_decay = 5e-4 }),
  data = images, batch = options.batch, epochs = epochs,
  loss = function(x, y)
    local logits = net(x)
    return nn.cross_entropy(logits, y), logits
  end,
  schedule = schedules.one_cycle { lr = options.lr, steps = epochs * (#images // options.batch) },
  evaluate = test, evaluate_batch = 500, metrics = { accuracy = metrics.Accuracy() },
  checkpoint = options.checkpoint, every = options.every, resume = options.resume, on_epoch = train.report,
}
print(("test accuracy %.4f"):format(run.history[run.epoch]["eval.accuracy"]))
