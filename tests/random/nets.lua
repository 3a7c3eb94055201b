-- A random small step of training, as a function file: called with a seed, the largest size of an axis and a path
-- (tests/random/train.c).
--
-- A network of some kind, a loss, an optimiser or two with what scripts do besides: clipping, accumulated gradients,
-- frozen parameters, running means, metrics. It is called once or twice on the interpreter, so that moments and
-- counters have values; what is exported then goes on from there. Names of arguments say what may be in them:
-- "y_below7" holds integers from 0 to 6.
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local seed, most, path = ...
math.randomseed(seed)
dc.seed(seed & 0x7fffffff)

local function below(n)
  return math.random(0, n - 1)
end

local function chance(percent)
  return math.random(100) <= percent
end

local function pick(list)
  return list[math.random(#list)]
end

-- The size of an axis; `least` unless 1. Multiples of vectors, one more, and anything.
local function size(least)
  local n = chance(40) and pick { 4, 8, 9, 16, 17, 32, 33, 64, 65 } or math.random(most)
  return math.max(least or 1, math.min(n, most))
end

-- ---- inputs ----

local args, inputs = {}, {}

local function input(name, dtype, shape, make)
  local text = ("%s[%s]"):format(dtype, table.concat(shape, ", "))
  args[#args + 1] = ("%s: %s"):format(name, text)
  inputs[#inputs + 1] = function() return make(text) end
end

local function floats(name, ...)
  input(name, "f32", { ... }, function(t) return dc.randn(t) end)
end

local function integers(name, high, ...)
  input(("%s_below%d"):format(name, high), "i32", { ... }, function(t) return dc.randint(t, { high = high }) end)
end

local function mask(...)
  if chance(50) then
    input("mask", "bool", { ... }, function(t) return dc.bernoulli(t, { p = 0.7 }) end)
  else
    input("mask_below2", "u8", { ... }, function(t) return dc.randint(t, { high = 2 }) end)
  end
end

-- ---- layers ----

local function activation()
  return pick { nn.ReLU, nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Softplus,
    function() return nn.GELU { approximate = "tanh" } end,
    function() return nn.LeakyReLU(0.1) end,
    function() return nn.ELU(0.5) end, nn.Hardswish, nn.Mish, nn.SELU, nn.PReLU, nn.Softsign, nn.ReLU6 }()
end

local function norm(n)
  local options = { affine = chance(80) }
  return chance(60) and nn.LayerNorm(n, options) or nn.RMSNorm(n, options)
end

local Residual = nn.class "Residual"

function Residual:init(inner)
  self.inner = inner
end

function Residual:forward(x)
  return x + self.inner(x)
end

-- Layers from n features to the number that it returns, over the last axis.
local function features(n, depth)
  local list = {}
  for _ = 1, depth do
    local m = chance(30) and n or size()
    local part = { nn.Linear(n, m, { bias = chance(85) }) }
    if chance(40) then table.insert(part, norm(m)) end
    if chance(85) then table.insert(part, activation()) end
    if chance(25) then table.insert(part, nn.Dropout(pick { 0.1, 0.5 })) end
    local block = nn.Sequential(part)
    list[#list + 1] = m == n and chance(60) and Residual(block) or block
    n = m
  end
  return nn.Sequential(list), n
end

-- ---- networks: each returns a function of its inputs, what holds its parameters, and the shape of its result ----

local networks = {}

function networks.plain()
  local b, n = size(), size()
  local net, m = features(n, math.random(3))
  if chance(25) then
    input("pixels_below256", "u8", { b, n }, function(t) return dc.randint(t, { high = 256 }) end)
    return function(x) return net(x:cast "f32" / 255) end, net, { b, m }
  end
  floats("x", b, n)
  return net, net, { b, m }
end

local function pooled_and_back(x)
  local y, indices = dc.max_pool2d(x, 2, { return_indices = true })
  return nn.max_unpool2d(y, indices, 2, { output_size = { x.shape[3], x.shape[4] } })
end

function networks.images()
  local b, c, h = math.random(4), math.random(3), math.random(5, 12)
  local layers, channels = {}, c
  for i = 1, math.random(2) do
    local out = pick { 1, 2, 3, 4, 8, 16, 17 }
    local options = { padding = i == 1 and pick { 0, 1 } or pick { 1, "same" } }
    if chance(30) then options = { stride = 2, padding = 1, bias = chance(70) } end
    layers[#layers + 1] = nn.Conv2d(channels, out, pick { 1, 2, 3 }, options)
    if chance(55) then
      layers[#layers + 1] = pick { nn.BatchNorm2d(out), nn.BatchNorm2d(out), nn.InstanceNorm2d(out, { affine = true }),
        nn.GroupNorm(out % 2 == 0 and 2 or 1, out), nn.LocalResponseNorm(3) }
    end
    layers[#layers + 1] = activation()
    if i == 1 and chance(60) then
      layers[#layers + 1] = pick { nn.MaxPool2d(2), nn.AvgPool2d(2), nn.MaxPool2d(2, { ceil_mode = true }),
        nn.AvgPool2d(3, { stride = 2, padding = 1, ceil_mode = true, count_padding = chance(50) }),
        nn.AdaptiveAvgPool2d(math.random(4)), nn.AdaptiveMaxPool2d { math.random(4), false }, pooled_and_back }
    end
    channels = out
    if chance(20) then
      out = pick { 1, 2, 4, 9 }
      local extent, padding = pick { 2, 3, 4 }, pick { 0, 1 }
      layers[#layers + 1] = nn.ConvTranspose2d(channels, out, extent, { stride = pick { 1, 2, 3 },
        padding = extent > 2 and padding or 0 }) -- of one pixel 2 elements less 2 would be none
      channels = out
    end
  end
  layers[#layers + 1] = chance(70) and nn.Flatten() or function(x) return x:mean { 3, 4 } end
  local net = nn.Sequential(layers)
  local n = net(dc.zeros(("f32[%d, %d, %d, %d]"):format(b, c, h, h))).shape[2]
  floats("x", b, c, h, h)
  return net, net, { b, n }
end

local Attention = nn.class "Attention"

function Attention:init(n, heads, causal)
  self.qkv, self.out = nn.Linear(n, 3 * n, { bias = chance(50) }), nn.Linear(n, n)
  self.norm, self.heads, self.causal = norm(n), heads, causal
  self.drop = chance(30) and nn.Dropout(0.1) or nn.Identity()
  self.spelled = chance(50)
end

function Attention:forward(x)
  local b, t, n = table.unpack(x.shape)
  local parts = self.qkv(self.norm(x)):reshape(b, t, 3, self.heads, n // self.heads)
  local q, k, v = parts[{ {}, {}, 1 }], parts[{ {}, {}, 2 }], parts[{ {}, {}, 3 }]
  local score
  if self.spelled then
    score = dc.einsum("b t h d, b s h d -> b h t s", q, k)
  else
    score = q:permute(1, 3, 2, 4):matmul(k:permute(1, 3, 4, 2))
  end
  score = score / (n // self.heads) ^ 0.5
  if self.causal then
    score = dc.where(dc.ones(("bool[%d, %d]"):format(t, t)):tril(), score, -1e9)
  end
  local weight = self.drop(score:softmax(-1))
  local mixed = weight:matmul(v:permute(1, 3, 2, 4)):permute(1, 3, 2, 4):reshape(b, t, n)
  return x + self.out(mixed)
end

function networks.tokens()
  local b, t, heads = math.random(4), math.random(math.min(most, 12)), math.random(3)
  local n, words = heads * math.random(math.max(1, most // heads // 2)), math.random(2, 20)
  local net = nn.Sequential {}
  net.embed = nn.Embedding(words, n)
  net.place = dc.param(("f32[%d, %d]"):format(t, n), nn.init.normal(("f32[%d, %d]"):format(t, n), { std = 0.1 }))
  local own = chance(50)
  net.block = own and Attention(n, heads, chance(60)) or nn.TransformerEncoderLayer(n, heads, { batch_first = true,
    feedforward = size(), norm_first = chance(50), dropout = pick { 0, 0.1 }, activation = pick { "relu", "gelu",
      "silu" },
    kv_heads = heads % 2 == 0 and chance(30) and heads // 2 or nil })
  local call = not own and chance(70) and { causal = chance(60), mask = chance(50) and
    (dc.iota(t):reshape(1, t) % 3):ne(1) or nil } or nil
  local turned = not own and n % 2 == 0 and chance(30)
  local rest, m = features(n, math.random(2))
  net.rest = rest
  integers("tokens", words, b, t)
  local tied = m == n and chance(50)
  return function(x)
    local placed = net.embed(x) + net.place
    placed = turned and nn.rotary(placed, { interleaved = tied }) or placed
    local y = own and net.block(placed) or net.block(placed, call)
    y = net.rest(y)
    return tied and y:matmul(net.embed.weight:transpose()) or y
  end, net, { b, t, tied and words or m }
end

function networks.bags()
  local b, t, n, words = size(), math.random(5), size(), math.random(2, 30)
  local net = nn.Sequential {}
  net.embed = nn.Embedding(words, n)
  local rest, m = features(n, math.random(2))
  net.rest = rest
  integers("tokens", words, b, t)
  return function(x) return net.rest(net.embed(x):mean(2)) end, net, { b, m }
end

-- The same weights at each step.
function networks.recurrent()
  local b, t, n, m = size(), math.random(3), size(), size()
  local net = nn.Sequential {}
  net.into, net.again = nn.Linear(n, m), nn.Linear(m, m, { bias = false })
  net.gate = chance(50) and nn.Linear(n, m) or nil
  floats("x", b, t, n)
  return function(x)
    local h = dc.zeros(("f32[%d, %d]"):format(b, m))
    for i = 1, t do
      local new = (net.into(x[{ {}, i }]) + net.again(h)):tanh()
      if net.gate then
        local z = net.gate(x[{ {}, i }]):sigmoid()
        new = z * h + (1 - z) * new
      end
      h = new
    end
    return h
  end, net, { b, m }
end

-- An encoder, noise, a decoder: what comes out is as wide as what goes in.
function networks.noisy()
  local b, n, m = size(), size(), size()
  local net = nn.Sequential {}
  net.mean, net.spread, net.back = nn.Linear(n, m), nn.Linear(n, m), nn.Linear(m, n)
  floats("x", b, n)
  return function(x)
    local z = net.mean(x) + dc.randn(("f32[%d, %d]"):format(b, m)) * (net.spread(x) * 0.5):exp()
    return net.back(z)
  end, net, { b, n }
end

-- ---- losses: of what the network returns; each adds its inputs ----

-- The options that all have, as a function of the inputs.
local function options_of(own, rows)
  local masked = chance(25)
  if masked then mask(table.unpack(rows)) end
  if chance(30) then own.reduction = "sum" end
  return function(t)
    own.mask = masked and (t.mask or t.mask_below2) or nil
    return own
  end
end

local function classes(shape)
  local n, rows, own = shape[#shape], { table.unpack(shape, 1, #shape - 1) }, {}
  local name = ("y_below%d"):format(n)
  integers("y", n, table.unpack(rows))
  if chance(25) then own.label_smoothing = 0.1 end
  if chance(15) then own.ignore_index = 0 end
  local options = options_of(own, rows)
  local plain = next(own) == nil or next(own) == "reduction" and next(own, "reduction") == nil
  local kind = plain and pick { "cross_entropy", "focal_loss", "multi_margin_loss" } or "cross_entropy"
  return function(t, found)
    found.hits = found.y:argmax(-1):eq(t[name]):sum()
    return nn[kind](found.y, t[name], options(t))
  end
end

local function targets(shape)
  floats("goal", table.unpack(shape))
  local options = options_of({}, { table.unpack(shape, 1, math.random(#shape)) })
  local kind = pick { "mse_loss", "mse_loss", "l1_loss", "huber_loss", "bce_with_logits", "smooth_l1_loss",
    "poisson_nll_loss", "soft_margin_loss" }
  return function(t, found)
    return nn[kind](found.y, kind == "bce_with_logits" and t.goal:gt(0):cast "f32" or t.goal, options(t))
  end
end

-- ---- optimisers ----

local function optimiser(params)
  local options = { lr = pick { 1e-3, 1e-2, 0.1 } }
  local kind = pick { "SGD", "SGD", "Adam", "Adam", "AdamW", "RMSprop" }
  if (kind == "SGD" or kind == "RMSprop") and chance(60) then options.momentum = 0.9 end
  if kind == "SGD" and options.momentum and chance(40) then options.nesterov = true end
  if kind == "RMSprop" and chance(40) then options.centered = true end
  if chance(25) then options.weight_decay = 0.01 end
  if chance(30) then options.clip_norm = pick { 0.1, 1 } end
  if chance(15) then options.clip_value = 0.05 end
  return optim[kind](params, options), options.clip_norm ~= nil
end

local function state_like(p)
  return dc.state(("%s[%s]"):format(p.dtype, table.concat(p.shape, ", ")))
end

-- Gradients are added up and used each second call; the parameters move only then.
local function accumulate(params)
  local sums, count = {}, dc.state "i32[]"
  for i, p in ipairs(params) do sums[i] = state_like(p) end
  return function(loss)
    local due = (count % 2):eq(1)
    for i, g in ipairs(dc.grad(loss, params, { unused = "zero" })) do
      local sum = sums[i] + g
      params[i]:set(dc.where(due, params[i] - 0.05 * sum, params[i]))
      sums[i]:set(dc.where(due, sum * 0, sum))
    end
    count:set(count + 1)
  end
end

-- What is done with the loss, and whether that returns the norm of the gradients.
local function updates(params)
  local kind = below(10)
  if kind == 0 then
    return accumulate(params)
  elseif kind == 1 then -- by hand
    return function(loss)
      for i, g in ipairs(dc.grad(loss, params, { unused = "zero" })) do
        params[i]:set(params[i] - 0.1 * g)
      end
    end
  elseif kind <= 3 and #params > 1 then
    local cut = math.random(#params - 1)
    local first, clips = optimiser { table.unpack(params, 1, cut) }
    local second = optimiser { table.unpack(params, cut + 1) }
    return function(loss)
      local length = first:step(loss, { unused = "zero" })
      second:step(loss, { unused = "zero" })
      return length
    end, clips
  end
  local given, opt, clips = chance(50), optimiser(params)
  if given then
    input("lr", "f32", {}, function() return dc.tensor(0.01) end)
  end
  return function(loss, t)
    return opt:step(loss, { unused = "zero", lr = given and t.lr or nil })
  end, clips
end

-- ---- the step ----

local forward, net, shape = networks[pick { "plain", "plain", "plain", "images", "images", "tokens", "tokens", "bags",
  "recurrent", "noisy" }]()
if shape[#shape] > 1 and chance(50) then -- a head
  local width, inner = math.random(2, 12), forward
  net.head = nn.Linear(shape[#shape], width)
  forward = function(x) return net.head(inner(x)) end
  shape[#shape] = width
end
if chance(15) then forward = dc.remat(forward) end
local by_class = shape[#shape] > 1 and chance(65)
local loss_of = (by_class and classes or targets)(shape)
local all = net:parameters()
local part = net.rest or net.back or net.again or net[1]
if #all > 2 and chance(10) and part then -- a layer is frozen
  part:freeze()
  if #net:parameters() == 0 then net:unfreeze() end
end
local params = net:parameters()
local update, has_norm = updates(params)
local average = chance(20) and state_like(params[1])

-- What it returns: types, and what of `found` they are.
local types, shown = { "f32[]" }, { "loss" }
local function show(key, percent, text)
  if chance(percent) then
    types[#types + 1], shown[#shown + 1] = text, key
  end
end
show("norm", has_norm and 40 or 0, "f32[]")
show("hits", by_class and 40 or 0, "i32[]")
show("y", 30, ("f32[%s]"):format(table.concat(shape, ", ")))

local names = {}
for i, text in ipairs(args) do names[i] = text:match "^[%w_]+" end

local function body(...)
  local t, found = {}, {}
  for i, name in ipairs(names) do t[name] = (select(i, ...)) end
  found.y = forward((...))
  found.loss = loss_of(t, found)
  found.norm = update(found.loss, t)
  if average then average:set(average * 0.9 + params[1] * 0.1) end
  local list = {}
  for i, key in ipairs(shown) do list[i] = found[key] end
  return table.unpack(list)
end

-- The function has the parameters of its signature.
local source = ("local body = ...; return function(%s) return body(%s) end"):format(table.concat(names, ", "),
  table.concat(names, ", "))
local step = dc.fn(("step(%s) -> %s"):format(table.concat(args, ", "), table.concat(types, ", ")), load(source)(body))
for _ = 1, math.random(2) do
  local values = {}
  for i, value in ipairs(inputs) do values[i] = value() end
  step(table.unpack(values))
end
step:export(path, {})
