-- Trains a network for Fashion-MNIST: 28x28 images of clothes, ten classes.
--
--   deepc fashion_mnist.lua [--epochs N] [--batch N] [--lr X] [--seed S] [--data DIR] [--loss-log FILE]
--
-- Both typed functions are traced and checked where they are defined, before any file is opened.

local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"

local usage = [[
usage: deepc fashion_mnist.lua [options]
  --epochs N       passes over the training images (5)
  --batch N        images per step (64)
  --lr X           learning rate of the first epoch, times 0.9 in each further one (1e-3)
  --seed S         of the initial weights and the order of images (0)
  --data DIR       where the four files are (/usr/share/datasets/fashion-mnist)
  --loss-log FILE  writes the loss of every step, one hexadecimal float a line]]

local function stop(message)
  io.stderr:write("fashion_mnist: ", message, "\n")
  os.exit(1, true)
end

local function count(text)
  local n = math.tointeger(tonumber(text))
  return n and n >= 1 and n or nil
end

local readers = {
  ["--epochs"] = { "epochs", count, "a positive integer" },
  ["--batch"] = { "batch", count, "a positive integer" },
  ["--lr"] = { "lr", function(text)
    local x = tonumber(text)
    return x and x > 0 and x < math.huge and x + 0.0 or nil
  end, "a positive number" },
  ["--seed"] = { "seed", function(text)
    return math.tointeger(tonumber(text))
  end, "an integer" },
  ["--data"] = { "data", tostring },
  ["--loss-log"] = { "loss_log", tostring },
}

local function read_options(args)
  local options = { epochs = 5, batch = 64, lr = 1e-3, seed = 0 }
  local i = 1
  while i <= #args do
    if args[i] == "--help" then
      print(usage)
      os.exit(0, true)
    end
    local reader = readers[args[i]]
    if not reader then
      stop(("unknown option '%s'\n%s"):format(args[i], usage))
    end
    local text = args[i + 1]
    if not text then
      stop(args[i] .. " needs a value")
    end
    local value = reader[2](text)
    if value == nil then
      stop(("%s needs %s, not '%s'"):format(args[i], reader[3], text))
    end
    options[reader[1]] = value
    i = i + 2
  end
  if options.batch > 60000 then
    stop "--batch: there are 60000 images"
  end
  return options
end

local options = read_options(arg)
dc.seed(options.seed)

local net = nn.Sequential {
  nn.Flatten(),
  nn.Linear(784, 128),
  nn.ReLU(),
  nn.Linear(128, 64),
  nn.ReLU(),
  nn.Linear(64, 10),
}
local opt = optim.Adam(net:parameters())

local signature = ("step(x: u8[%d, 28, 28], y: i32[%d], lr: f32[]) -> f32[]"):format(options.batch, options.batch)
local step = dc.fn(signature, function(x, y, lr)
  local logits = net(x:cast "f32" / 255)
  local loss = nn.cross_entropy(logits, y)
  opt:step(loss, { lr = lr })
  return loss
end)

local test_batch = 500 -- divides 10000
local correct = dc.fn(("correct(x: u8[%d, 28, 28], y: i32[%d]) -> i32[]"):format(test_batch, test_batch), function(x, y)
  local logits = net(x:cast "f32" / 255)
  return logits:argmax(2):eq(y):cast("i32"):sum()
end)

local train, test = data.fashion_mnist { dir = options.data }

local log
if options.loss_log then
  local message
  log, message = io.open(options.loss_log, "w")
  if not log then
    stop(message)
  end
end

local accuracy
for epoch = 1, options.epochs do
  local lr, total, steps = options.lr * 0.9 ^ (epoch - 1), 0, 0
  for x, y in train:batches { size = options.batch, shuffle = true, seed = options.seed, last = "drop" } do
    local loss = step(x, y, lr):item()
    if log then
      log:write(("%a\n"):format(loss))
    end
    total, steps = total + loss, steps + 1
  end
  local right = 0
  for x, y in test:batches { size = test_batch } do
    right = right + correct(x, y):item()
  end
  accuracy = right / #test
  print(("epoch %d  loss %.4f  test accuracy %.4f"):format(epoch, total / steps, accuracy))
end

if log then
  local ok, message = log:close()
  if not ok then
    stop(message)
  end
end
print(("test accuracy %.4f"):format(accuracy))
