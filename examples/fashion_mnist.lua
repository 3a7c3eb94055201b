-- Trains a network for Fashion-MNIST: 28x28 images of clothes, ten classes.
--
--   deepc fashion_mnist.lua --help
--   deepc fashion_mnist.lua --model cnn --checkpoint run.safetensors --loss-log run.log --plot run
--   deepc fashion_mnist.lua --model cnn --checkpoint run.safetensors --loss-log run.log --plot run --resume
--   mpirun -n 4 deepc fashion_mnist.lua
--
-- The typed functions are traced and checked where they are defined, before any file is opened. A run
-- that was killed and goes on with --resume has the losses, to the last bit, of one that was not. Several ranks share
-- each batch: the same training, but for the rounding of sums.

local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"
local plot = require "deepc.plot"

local options = dc.options {
  about = "Trains a network for Fashion-MNIST.",
  { "model", "mlp", "the network", choices = { "mlp", "cnn" } },
  { "epochs", nil, "passes over the training images (5, with the cnn 8)", type = "integer", min = 1 },
  { "batch", 64, "images per step", min = 1, max = 60000 },
  { "lr", 1e-3, "learning rate of the first epoch, times 0.9 in each further one", min = 0 },
  { "seed", 0, "of the initial weights and the order of images" },
  { "data", "/usr/share/datasets/fashion-mnist", "where the four files are", value = "DIR" },
  { "checkpoint", nil, "keeps all that is needed to go on", value = "FILE" },
  { "every", 200, "steps between two checkpoints", min = 1, needs = "checkpoint" },
  { "resume", false, "goes on from the checkpoint, if there is one", needs = "checkpoint" },
  { "loss-log", nil, "writes the loss of every step, one hexadecimal float a line", value = "FILE" },
  { "plot", nil, "draws the losses of the log as NAME.svg and NAME.png", value = "NAME", needs = "loss-log" },
  { "save", nil, "writes the trained parameters", value = "FILE" },
}

options.epochs = options.epochs or (options.model == "cnn" and 8 or 5)

local world = dc.world()
local first = world.rank == 0 -- it tells and writes
dc.mesh { data = world.size }

-- Whether what is written later can be is told now, and not after an hour of training.
for _, path in pairs(first and { options.checkpoint, options.save, options.plot } or {}) do
  local probe = path .. ".new"
  local file, message = io.open(probe, "wb")
  if not (file and file:close() and os.remove(probe)) then
    dc.fail(message or probe .. ": cannot be written")
  end
end

-- ---- the network and its two functions ----

local function mlp()
  return nn.Sequential {
    nn.Flatten(),
    nn.Linear(784, 128),
    nn.ReLU(),
    nn.Linear(128, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
  }
end

local function cnn()
  return nn.Sequential {
    function(x) return x:reshape(#x, 1, 28, 28) end,
    nn.Conv2d(1, 16, 3, { padding = 1 }),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, { padding = 1 }),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(1568, 128),
    nn.ReLU(),
    nn.Dropout(0.25),
    nn.Linear(128, 10),
  }
end

dc.seed(options.seed)
local net = options.model == "cnn" and cnn() or mlp()
local opt = optim.Adam(net:parameters())

local signature = "step(x: u8[%d @ data, 28, 28], y: i32[%d @ data], lr: f32[]) -> f32[]"
local step = dc.fn(signature:format(options.batch, options.batch), function(x, y, lr)
  local logits = net(x:cast "f32" / 255)
  local loss = nn.cross_entropy(logits, y)
  opt:step(loss, { lr = lr })
  return loss
end)

net:eval()
local test_batch = 500 -- divides 10000
local counts = "correct(x: u8[%d @ data, 28, 28], y: i32[%d @ data]) -> i32[]"
local correct = dc.fn(counts:format(test_batch, test_batch), function(x, y)
  local logits = net(x:cast "f32" / 255)
  return logits:argmax(2):eq(y):sum()
end)
net:train()

local train, test = data.fashion_mnist { dir = options.data }

local function accuracy()
  net:eval()
  local right = 0
  for x, y in test:batches { size = test_batch } do
    right = right + correct(x, y):item()
  end
  net:train()
  return right / #test
end

-- ---- the log ----

-- The first `size` bytes of a log that is longer, or nothing. Another file takes its place, whole, so that
-- this too may be interrupted.
local function cut(path, size)
  local old = size > 0 and (io.open(path, "rb") or dc.fail(path .. ": the log of the checkpoint is not there"))
  local text = old and old:read(size) or ""
  if #text < size then
    dc.fail(("%s has %d bytes, and %d when the checkpoint was made"):format(path, #text, size))
  end
  local file, message = io.open(path .. ".new", "wb")
  if not (file and file:write(text) and file:close() and os.rename(path .. ".new", path)) then
    dc.fail(message or path .. ": cannot be written")
  end
end

local function open_log(path, size)
  cut(path, size)
  local file, message = io.open(path, "ab")
  return file or dc.fail(message)
end

local function read_log(path)
  local losses = {}
  for line in io.lines(path) do
    losses[#losses + 1] = tonumber(line)
  end
  return losses
end

-- Means over the last so many.
local function smooth(losses, window)
  local means, sum = {}, 0
  for i, loss in ipairs(losses) do
    sum = sum + loss - (losses[i - window] or 0)
    means[i] = sum / math.min(i, window)
  end
  return means
end

-- ---- training ----

-- Where it is: kept with the checkpoint, together with what the run depends on.
local state = { step = 0, total = 0.0, steps = 0, log_bytes = 0 }
local ckpt = options.checkpoint
  and dc.checkpoint(options.checkpoint, { model = net, optimizer = opt, data = train })

state = options.resume and ckpt:load() or state
for _, name in ipairs { "model", "batch", "lr", "seed" } do
  if state[name] ~= nil and state[name] ~= options[name] then
    dc.fail(("--resume: the checkpoint is of --%s %s"):format(name, state[name]))
  end
  state[name] = options[name]
end

local log = first and options.loss_log and open_log(options.loss_log, state.log_bytes)

local function write_log(loss)
  local line = ("%a\n"):format(loss)
  state.log_bytes = state.log_bytes + #line
  return log:write(line) or dc.fail(options.loss_log .. ": cannot be written")
end

-- The log first: the checkpoint says how much of it there is.
local function save()
  if log and not log:flush() then
    dc.fail(options.loss_log .. ": cannot be written")
  end
  if ckpt then
    ckpt:save(state)
  end
end

local last
for epoch = train.epoch + 1, options.epochs do
  local lr, shown = options.lr * 0.9 ^ (epoch - 1), {}
  local batches = train:batches { size = options.batch, shuffle = true, seed = options.seed, last = "drop" }
  for x, y in dc.progress(batches, { title = "epoch " .. epoch, metrics = shown }) do
    local loss <close> = step(x, y, lr)
    shown.loss = loss:item()
    state.step, state.steps, state.total = state.step + 1, state.steps + 1, state.total + shown.loss
    if log then
      write_log(shown.loss)
    end
    if state.step % options.every == 0 then
      save()
    end
  end
  last = accuracy()
  if first then
    print(("epoch %d  loss %.4f  test accuracy %.4f"):format(epoch, state.total / state.steps, last))
  end
  state.total, state.steps = 0.0, 0
  save()
end

if log and not log:close() then
  dc.fail(options.loss_log .. ": cannot be written")
end
if first and options.plot then
  local losses = read_log(options.loss_log)
  local series = { { y = losses, name = "each step" }, { y = smooth(losses, 100), name = "mean of 100" } }
  for _, kind in ipairs { ".svg", ".png" } do
    plot.lines(options.plot .. kind, series,
      { title = "Fashion-MNIST, " .. options.model, x = "step", y = "loss", log = true })
  end
end
if options.save then
  dc.save(options.save, net, { model = options.model, epochs = tostring(options.epochs) })
end
last = last or accuracy()
if first then
  print(("test accuracy %.4f"):format(last))
end
