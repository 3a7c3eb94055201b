-- Denoising diffusion on Fashion-MNIST, which draws new images: a sheet of 25 in diffusion.png.
--
--   deepc diffusion.lua
--   deepc diffusion.lua --epochs 12
--   deepc diffusion.lua --checkpoint diffusion.safetensors --resume
--
-- Ho, Jain and Abbeel, Denoising Diffusion Probabilistic Models, 2020. A small U-Net learns to tell the noise that was
-- added to an image. Beginning with noise alone, what it tells is taken away in 200 steps, until an image is left.
-- The mean square error of the noise, whose variance is 1, is at most 0.06 on the test images, and the new images are
-- about as bright as those (0.29); three minutes on two cores. The images are those of Debian's dataset-fashion-mnist.

local dc = require "deepc"
local nn, optim = require "deepc.nn", require "deepc.optim"
local data, train = require "deepc.data", require "deepc.train"

local options = dc.options {
  about = "Trains a diffusion model on Fashion-MNIST.",
  { "epochs", 4, "passes over the training images", min = 1 },
  { "batch", 64, "images in a step", min = 1 },
  { "width", 32, "channels of 14x14 pixels, a multiple of 4", min = 4 },
  { "times", 200, "steps from noise to an image", min = 25 },
  { "lr", 1e-3, "learning rate", min = 0 },
  { "seed", 0, "of everything" },
  { "quick", false, "a fortieth of the images, a smaller network" },
  { "data", "/usr/share/datasets/fashion-mnist", "where the four files are", value = "DIR" },
  { "samples", "diffusion.png", "where to draw new images", value = "FILE" },
  { "checkpoint", nil, "keeps all that is needed to go on", value = "FILE" },
  { "resume", false, "goes on from the checkpoint, if there is one", needs = "checkpoint" },
}
if options.quick then
  options.width, options.times, options.lr = 16, 50, 5e-3
end
dc.seed(options.seed)

-- ---- the network ----

-- Two convolutions and a shortcut; between them the time shifts each channel.
local Block = nn.class "Block"

function Block:init(inputs, outputs, times)
  self.first = nn.Conv2d(inputs, outputs, 3, { padding = 1 })
  self.time = nn.Linear(times, outputs)
  self.second = nn.Conv2d(outputs, outputs, 3, { padding = 1 })
  self.shortcut = inputs == outputs and nn.Identity() or nn.Conv2d(inputs, outputs, 1)
end

function Block:forward(x, time)
  local y = self.first(x) + self.time(time):reshape(#x, -1, 1, 1)
  return (self.shortcut(x) + self.second(y:silu())):silu()
end

local UNet = nn.class "UNet"

function UNet:init(width)
  local few, times = width // 4, 2 * width
  self.time = nn.Sequential { nn.Linear(width, times), nn.SiLU(), nn.Linear(times, times), nn.SiLU() }
  self.enter = nn.Conv2d(1, few, 3, { padding = 1 })
  self.large = Block(width, width, times)
  self.small = Block(width, 2 * width, times)
  self.middle = Block(2 * width, 2 * width, times)
  self.join = Block(3 * width, width, times)
  self.leave = nn.Sequential {
    nn.Conv2d(2 * few, few, 3, { padding = 1 }), nn.SiLU(), nn.Conv2d(few, 1, 3, { padding = 1 }),
  }
end

local waves = nn.sinusoidal_positions(options.times, options.width)

-- The noise in x, [n, 1, 28, 28], at the times t, [n]: at 14x14, where 2x2 pixels are channels, and at 7x7.
function UNet:forward(x, t)
  local time = self.time(waves:take(t))
  local pixels = self.enter(x):silu()
  local large = self.large(nn.pixel_unshuffle(pixels, 2), time)
  local small = self.middle(self.small(dc.avg_pool2d(large, 2), time), time)
  local joined = self.join(dc.concat({ nn.interpolate(small, { scale = 2 }), large }, 2), time)
  return self.leave(dc.concat({ nn.pixel_shuffle(joined, 2), pixels }, 2))
end

local net = UNet(options.width)
local average = optim.EMA(net, options.quick and 0.9 or 0.995)

-- ---- noise ----

-- The variance of the noise that each step adds, and what is left of the image's: from nearly all to nearly nothing.
local beta = (dc.iota(("f32[%d]"):format(options.times)) + 1) * (20 / options.times ^ 2)
local left = (1 - beta):cumprod(1)

local function loss(images)
  local x = images:reshape(#images, 1, 28, 28):cast "f32" / 127.5 - 1
  local t = dc.randint(("i32[%d]"):format(#x), { high = options.times })
  local a, noise = left:take(t):reshape(#x, 1, 1, 1), dc.randn(x)
  return nn.mse_loss(net(a:sqrt() * x + (1 - a):sqrt() * noise, t), noise)
end

-- The steps back: a mean of the image that the noise leaves and of x, and a little new noise.
local draw = dc.fn("draw() -> f32[25, 28, 28]", function()
  local images = dc.fori(options.times, function(i, x)
    local t = options.times - 1 - i
    local a, b = left:take(t), beta:take(t)
    local before = a / (1 - b)
    local noise = net(x, t:reshape(1):expand(25))
    local image = ((x - (1 - a):sqrt() * noise) / a:sqrt()):maximum(-1):minimum(1)
    local mean = (before:sqrt() * b * image + (1 - b):sqrt() * (1 - before) * x) / (1 - a)
    return mean + (b * (1 - before) / (1 - a)):sqrt() * dc.randn(x)
  end, dc.randn "f32[25, 1, 28, 28]")
  return (images:reshape(25, 28, 28) + 1) / 2
end)

-- ---- training, then drawing ----

local learn, test = data.fashion_mnist { dir = options.data }
if options.quick then
  learn = learn:random_split({ 0.025, 0.975 }, { seed = options.seed })
  test = test:random_split({ 0.1, 0.9 }, { seed = options.seed })
end
local run = train.fit {
  model = net, optimizer = optim.Adam(net:parameters(), { lr = options.lr, clip_norm = 1 }), loss = loss,
  data = learn, batch = options.batch, epochs = options.epochs, evaluate = test, evaluate_batch = 500,
  average = average, checkpoint = options.checkpoint, resume = options.resume, on_epoch = train.report,
}
local images = average:averaged(draw)
data.write_image(options.samples, (images * 255):cast("u8"):reshape(5, 5, 28, 28):permute(1, 3, 2, 4):reshape(140, 140))
print(("mean brightness of new images %.3f"):format(images:mean():item()))
print(("test loss %.4f"):format(run.history[#run.history]["eval.loss"]))
