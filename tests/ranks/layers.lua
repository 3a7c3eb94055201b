-- Trains many small models for three steps each, one for every kind of layer, of operation along the batch and of
-- optimiser, and writes losses and means of parameters for tests/ranks/compare.lua: the same however they lie on ranks.
--
--   [mpirun -n N] deepc tests/ranks/layers.lua MODE FILE
--
-- MODE: data (parallel), zero1 (optimisers split what they keep), zero3 (parameters split over the data axis), model
-- (parameters split, the batch whole).
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"

local mode, path = arg[1], arg[2]
local world = dc.world()
local model = mode == "model" and world.size or 1
dc.mesh { data = world.size // model, model = model }

local rows <const> = 8
local lines = {}

-- input: the sizes behind the batch; forward: what is done with the network and its input.
local function train(name, net, input, forward, optimiser, options)
  local split = ("f32[%d @ data, %s]"):format(rows, input)
  local batch = dc.part(dc.randn(("f32[%d, %s]"):format(rows, input)), split)
  if mode == "zero3" or mode == "model" then
    dc.shard(net, mode == "zero3" and "data" or "model")
  end
  options.shard = mode == "zero1" and "data" or nil
  local opt = optim[optimiser](net:parameters(), options)
  local step = dc.fn(("step(x: %s) -> f32[]"):format(split), function(x)
    local loss = forward(net, x):square():mean()
    opt:step(loss)
    return loss
  end)
  local line = { name }
  for i = 1, 3 do
    line[i + 1] = ("%.9g"):format(step(batch):item())
  end
  for _, p in ipairs(net:parameters()) do
    line[#line + 1] = ("%.9g"):format(dc.whole(p):abs():mean():item())
  end
  lines[#lines + 1] = table.concat(line, " ")
end

local function plain(net, x)
  return net(x)
end

local function layer(name, input, make, forward)
  dc.seed(5)
  train(name, make(), input, forward or plain, "SGD", { lr = 0.05, momentum = 0.9 })
end

-- ---- layers ----

-- Behind a convolution, whose gradient has to come through.
local images = {
  batch_norm = nn.BatchNorm2d(8), group_norm = nn.GroupNorm(4, 8),
  instance_norm = nn.InstanceNorm2d(8, { affine = true }),
  local_norm = nn.LocalResponseNorm(3), avg_pool = nn.AvgPool2d(2),
  max_pool = nn.MaxPool2d(3, { stride = 2, padding = 1 }),
  lp_pool = nn.LPPool2d(2, 2), adaptive = nn.AdaptiveAvgPool2d { 3, 2 }, adaptive_max = nn.AdaptiveMaxPool2d { 3, 2 },
  reflection = nn.ReflectionPad2d(1), replication = nn.ReplicationPad2d(1), circular = nn.CircularPad2d(1),
  pixels = nn.PixelShuffle(2), channels = nn.ChannelShuffle(2), upsample = nn.Upsample { scale = 2, mode = "bilinear" },
  depthwise = nn.Conv2d(8, 8, 3, { groups = 8, stride = 2, padding = 1 }),
  transposed = nn.ConvTranspose2d(8, 4, 3, { stride = 2 }),
  dropout = nn.Dropout2d(0.3), alpha_dropout = nn.AlphaDropout(0.2), prelu = nn.PReLU(8),
}
local names = {}
for name in pairs(images) do
  names[#names + 1] = name
end
table.sort(names)
for _, name in ipairs(names) do
  layer(name, "4, 9, 9", function() return nn.Sequential { nn.Conv2d(4, 8, 3), images[name] } end)
end

layer("linear", "12", function()
  return nn.Sequential { nn.Linear(12, 16), nn.GELU(), nn.RMSNorm(16), nn.Linear(16, 8) }
end)
layer("batch_norm1d", "12", function() return nn.Sequential { nn.Linear(12, 16), nn.BatchNorm1d(16) } end)
layer("rrelu", "8", function() return nn.Sequential { nn.Linear(8, 8), nn.RReLU() } end)
layer("conv1d", "4, 12", function() return nn.Conv1d(4, 8, 3, { dilation = 2 }) end)
layer("conv3d", "2, 6, 6, 6", function() return nn.Conv3d(2, 4, 3) end)
layer("weight_norm", "8", function() return nn.weight_norm(nn.Linear(8, 8)) end)
layer("bilinear", "8", function() return nn.Bilinear(8, 8, 4) end, function(net, x) return net(x, x:flip(2)) end)
layer("embedding", "4", function() return nn.Embedding(10, 8) end, function(net, x)
  return net((x:abs() * 3):cast "i32":minimum(9))
end)
layer("bags", "4", function() return nn.EmbeddingBag(10, 8) end, function(net, x)
  return net((x:abs() * 3):cast "i32":minimum(9))
end)
for _, name in ipairs { "RNN", "GRU", "LSTM" } do
  layer(name, "5, 6", function() return nn[name](6, 8, { layers = 2, bidirectional = true }) end, function(net, x)
    return (net(x))
  end)
end
layer("attention", "6, 8", function() return nn.MultiheadAttention(8, 2) end, function(net, x)
  return (net(x, x, x))
end)
local small <const> = { feedforward = 16 }
layer("encoder", "6, 8", function() return nn.TransformerEncoderLayer(8, 2, small) end)
layer("decoder", "6, 8", function() return nn.TransformerDecoderLayer(8, 2, small) end, function(net, x)
  return net(x, x)
end)

-- ---- along the batch ----

local function along(name, f)
  layer(name, "8", function() return nn.Linear(8, 8) end, function(net, x) return f(net(x), x) end)
end

along("softmax", function(y) return y:softmax(1) end)
along("standardised", function(y) return (y - y:mean(1):reshape(1, 8)) / y:std(1):reshape(1, 8) end)
along("logsumexp", function(y) return y:logsumexp(1) end)
along("product", function(y) return y:prod(1) end)
along("median", function(y) return y - y:median(1) end)
along("norm", function(y) return y / y:norm() end)
along("sort", function(y) return (y:sort(1)):cumsum(1) end)
along("cumprod", function(y) return y:tanh():cumprod(1) end)
along("argmax", function(y) return y * y:argmax(1):cast "f32" end)
along("flip", function(y) return y:flip(1) * y end)
along("roll", function(y) return y:roll(1, 1) * y end)
along("slices", function(y) return y[{ { 2, 6 } }] * y[{ { 1, 5 } }] end)
along("take", function(y) return y:take(dc.tensor({ 2, 1, 4, 7 }, "i32"), 1) end)
along("concat", function(y, x) return dc.concat({ y, x, y }, 1):softmax(1) end)
along("tile", function(y) return y:tile(3, 1):softmax(1) end)
along("pad", function(y) return y:pad({ { 1, 2 }, { 0, 0 } }):softmax(1) end)
along("gram", function(y) return y:matmul(y:transpose(1, 2)):softmax(2) end)
along("covariance", function(y) return y:transpose(1, 2):matmul(y) end)
along("einsum", function(y, x) return dc.einsum("b i, c i -> b c", y, x) end)
along("reshape", function(y) return y:reshape(2, 4, 2, 4):transpose(1, 3):reshape(16, 4):softmax(2) end)
along("where", function(y) return dc.where(y:gt(y:mean()), y, y * 2) end)
along("random", function(y) return y * dc.randn "f32[8, 8]" + dc.rand "f32[8]":reshape(8, 1) * y end)
along("vmap", function(y) return dc.vmap(function(r) return (r * r):softmax(1) end)(y) end)
along("remat", function(y) return dc.remat(function(v) return v:tanh():exp() end)(y) end)
along("scan", function(y)
  local _, all = dc.scan(function(c, row)
    local new = (c + row):tanh()
    return new, new
  end, dc.zeros "f32[8]", y)
  return all
end)
along("cross_entropy", function(y)
  return nn.cross_entropy(y, dc.arange(8):cast "i32", { label_smoothing = 0.1, ignore_index = 3 })
end)
along("triplets", function(y, x) return nn.triplet_margin_loss(y, y:flip(1), x) end)

-- ---- optimisers ----

local optimisers = { "ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "LAMB", "Lion", "Muon", "NAdam", "RAdam",
  "RMSprop", "SGD" }
for _, name in ipairs(optimisers) do
  for kind, options in ipairs { {}, { clip_norm = 0.5 }, { clip_value = 0.01, weight_decay = 0.1 } } do
    dc.seed(5)
    options.lr = 0.02
    train(name .. kind, nn.Sequential { nn.Linear(12, 16), nn.GELU(), nn.Linear(16, 8) }, "12", plain, name, options)
  end
end

if world.rank == 0 then
  local file = assert(io.open(path, "w"))
  file:write(table.concat(lines, "\n"), "\n")
  file:close()
  print(#lines .. " models")
end
