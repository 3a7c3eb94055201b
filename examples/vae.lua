-- A variational autoencoder of Fashion-MNIST, which draws new images: a sheet of 64 in vae.png.
--
--   deepc vae.lua
--   deepc vae.lua --latent 10 --epochs 30 --samples clothes.png
--   deepc vae.lua --checkpoint vae.safetensors --resume
--   deepc vae.lua --tensorboard runs/vae      (tensorboard --logdir runs)
--
-- Kingma and Welling, Auto-Encoding Variational Bayes, 2013. The encoder gives the mean and the variance of 20 latent
-- numbers of an image, the decoder the probability that a pixel is white. The loss is the negative evidence lower
-- bound (ELBO), which reaches at most 242 nats on the test images; a minute on two cores. The images are those of
-- Debian's dataset-fashion-mnist.

local dc = require "deepc"
local nn, optim = require "deepc.nn", require "deepc.optim"
local data, train = require "deepc.data", require "deepc.train"
local tensorboard = require "deepc.tensorboard"

local options = dc.options {
  about = "Trains a variational autoencoder on Fashion-MNIST.",
  { "epochs", 15, "passes over the training images", min = 1 },
  { "batch", 128, "images in a step", min = 1 },
  { "hidden", 400, "units of the hidden layers", min = 1 },
  { "latent", 20, "numbers that stand for an image", min = 1 },
  { "lr", 1e-3, "learning rate", min = 0 },
  { "seed", 0, "of everything" },
  { "quick", false, "a tenth of the images, a smaller network" },
  { "data", "/usr/share/datasets/fashion-mnist", "where the four files are", value = "DIR" },
  { "samples", "vae.png", "where to draw new images", value = "FILE" },
  { "checkpoint", nil, "keeps all that is needed to go on", value = "FILE" },
  { "tensorboard", nil, "losses, graph and images of each epoch for TensorBoard", value = "DIR" },
  { "resume", false, "goes on from the checkpoint, if there is one", needs = "checkpoint" },
}
if options.quick then
  options.hidden, options.lr = 100, 3e-3
end
dc.seed(options.seed)

-- ---- the model ----

local VAE = nn.class "VAE"

function VAE:init(hidden, latent)
  self.encoder = nn.Sequential {
    nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent),
  }
  self.decoder = nn.Sequential {
    nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 784),
  }
end

-- The logits of the pixels, and how far the distribution of the latent numbers is from the standard normal one.
function VAE:forward(x)
  local mean, log_variance = self.encoder(x):split(2, 2)
  local z = mean + (log_variance / 2):exp() * dc.randn(mean)
  local divergence = (mean:square() + log_variance:exp() - log_variance - 1):sum(2) / 2
  return self.decoder(z), divergence
end

local net = VAE(options.hidden, options.latent)

local function loss(images)
  local x = images:reshape(#images, 784):cast "f32" / 255
  local logits, divergence = net(x)
  return (nn.bce_with_logits(logits, x, { reduction = "none" }):sum(2) + divergence):mean()
end

-- Eight rows of eight images, side by side.
local draw = dc.fn("draw() -> u8[224, 224]", function()
  local white = net.decoder(dc.randn(("f32[64, %d]"):format(options.latent))):sigmoid()
  return (white * 255):cast("u8"):reshape(8, 8, 28, 28):permute(1, 3, 2, 4):reshape(224, 224)
end)

-- ---- training ----

local learn, test = data.fashion_mnist { dir = options.data }
if options.quick then
  learn = learn:random_split({ 0.1, 0.9 }, { seed = options.seed })
end
local log = options.tensorboard and tensorboard.writer(options.tensorboard)
local run = train.fit {
  model = net, optimizer = optim.Adam(net:parameters(), { lr = options.lr }), loss = loss,
  data = learn, batch = options.batch, epochs = options.epochs, evaluate = test, evaluate_batch = 500,
  checkpoint = options.checkpoint, resume = options.resume,
  tensorboard = options.tensorboard, histograms = log ~= nil,
  on_epoch = function(r)
    train.report(r)
    if log then
      log:image("samples", draw(), r.step)
    end
  end,
}
data.write_image(options.samples, draw())
print(("negative ELBO %.2f nats"):format(run.history[#run.history]["eval.loss"]))
