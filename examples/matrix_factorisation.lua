-- Matrix factorisation for recommendations (Koren, Bell, Volinsky 2009): the rating that a user gives to an item is a
-- mean, a bias of the user, a bias of the item and the product of two vectors. All are learnt from a tenth of the
-- ratings.
--
--   deepc matrix_factorisation.lua
--   deepc matrix_factorisation.lua --epochs 10 --checkpoint run.safetensors
--   deepc matrix_factorisation.lua --epochs 30 --checkpoint run.safetensors --resume
--
-- The ratings are made here: a matrix of rank 4 with biases, and noise with a standard deviation of 0.3, which no
-- prediction gets below. RMSE on ratings that were held out: 0.34, with biases alone 1.05. It takes a second.

local dc, random = require "deepc", require "deepc.random"
local nn, optim, schedules = require "deepc.nn", require "deepc.optim", require "deepc.schedules"
local data, train = require "deepc.data", require "deepc.train"

local options = dc.options {
  about = "Learns vectors of users and items that predict ratings.",
  { "epochs", nil, "passes over the ratings (30, with --quick 12)", type = "integer", min = 1 },
  { "batch", 500, "ratings in a step", min = 1 },
  { "rank", 4, "size of the vectors", min = 1 },
  { "lr", 0.05, "learning rate of the first epoch, times 0.9 in each further one", min = 0 },
  { "seed", 0, "of the ratings and the training" },
  { "quick", false, "fewer epochs" },
  { "checkpoint", nil, "written after each epoch", value = "FILE" },
  { "resume", false, "goes on from the checkpoint", needs = "checkpoint" },
}
local USERS, ITEMS = 1000, 500
dc.seed(options.seed)

-- ---- the model ----

local function embedding(count, size)
  local layer = nn.Embedding(count, size)
  layer.weight:set(nn.init.normal(layer.weight, { std = 0.3 }))
  return layer
end

local Factors = nn.class "Factors"

function Factors:init(rank)
  self.mean = dc.param "f32[]"
  self.user, self.user_bias = embedding(USERS, rank), embedding(USERS, 1)
  self.item, self.item_bias = embedding(ITEMS, rank), embedding(ITEMS, 1)
end

function Factors:forward(user, item)
  local biases = self.user_bias(user) + self.item_bias(item)
  return self.mean + biases:reshape(-1) + (self.user(user) * self.item(item)):sum(2)
end

local model = Factors(options.rank)
local opt = optim.Adam(model:parameters())

-- ---- the ratings ----

local function normal(rows, columns)
  return dc.randn(("f32[%d, %d]"):format(rows, columns))
end

local rank, count = 4, USERS * ITEMS // 10
local matrix = 3 + 0.5 * normal(USERS, 1) + 0.5 * normal(1, ITEMS)
  + normal(USERS, rank):matmul(normal(rank, ITEMS)) / rank ^ 0.5
local cell = random.permutation(USERS * ITEMS)[{ { 1, count } }]
local rating = matrix:flatten():take(cell, 1) + 0.3 * dc.randn(("f32[%d]"):format(count))
local known, held_out = data.set(cell // ITEMS, cell % ITEMS, rating):random_split { 0.8, 0.2 }

-- ---- training ----

local run = train.fit {
  model = model, optimizer = opt, data = known, batch = options.batch, evaluate = held_out,
  loss = function(user, item, y)
    return nn.mse_loss(model(user, item), y)
  end,
  schedule = schedules.step { lr = options.lr, factor = 0.9, every = #known // options.batch },
  epochs = options.epochs or (options.quick and 12 or 30),
  checkpoint = options.checkpoint, resume = options.resume,
  on_epoch = train.report,
}
print(("test RMSE %.4f"):format(run.history[run.epoch]["eval.loss"] ^ 0.5))
