-- Programs, with inputs and what deepc computes of them, for tests/stablehlo/xla.py:
--
--   deepc tests/stablehlo/xla.lua FOLDER [PATTERN]
--
-- Those of cases.lua, then whole networks. FOLDER gets for each of them N.mlir, N.mlirbc, and N.json with N.bin, which
-- holds inputs and results one behind the other.
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local folder, pattern = arg[1], arg[2] or ""
local here = arg[0]:match "^(.*)/" or "."
local cases, write = dofile(here .. "/cases.lua"), dofile(here .. "/xla_files.lua")
dc.seed(1)

local function add(name, signature, body, ...)
  cases[#cases + 1] = { name = name, f = dc.fn(signature, body), args = { ... }, near = 1e-5 }
end

-- ---- networks ------------------------------------------------------------------------------------

local function training(name, net, opt, signature, loss_of, ...)
  add(name, signature, function(x, y)
    local loss = loss_of(net, x, y)
    opt:step(loss)
    return loss
  end, ...)
end

local function labels(n, classes)
  return dc.iota(("i32[%d]"):format(n)):rem(classes)
end

local function parameters(layers)
  local list = {}
  for _, layer in ipairs(layers) do
    table.move(layer:parameters(), 1, #layer:parameters(), #list + 1, list)
  end
  return list
end

local function classify(net, x, y)
  return nn.cross_entropy(net(x), y)
end

do
  local net = nn.Sequential { nn.Conv2d(3, 8, 3, { padding = 1 }), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, { padding = 1 }), nn.BatchNorm2d(16), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
    nn.Linear(16 * 4 * 4, 10) }
  training("convolutional network, SGD", net, optim.SGD(net:parameters(), { lr = 0.05, momentum = 0.9 }),
    "step(x: f32[n, 3, 16, 16], y: i32[n]) -> f32[]", classify, dc.randn "f32[8, 3, 16, 16]", labels(8, 10))
end
do
  local net = nn.Sequential { nn.Linear(20, 64), nn.GELU(), nn.LayerNorm(64), nn.Dropout(0.1), nn.Linear(64, 5) }
  training("perceptron, AdamW", net, optim.AdamW(net:parameters(), { lr = 0.01 }),
    "step(x: f32[n, 20], y: i32[n]) -> f32[]", classify, dc.randn "f32[32, 20]", labels(32, 5))
end
do
  local lstm, head = nn.LSTM(6, 12), nn.Linear(12, 4)
  local opt = optim.Adam(parameters { lstm, head }, { lr = 0.01 })
  add("LSTM, Adam", "step(x: f32[n, t, 6], y: i32[n]) -> f32[]", function(x, y)
    local h = lstm(x)
    local loss = nn.cross_entropy(head(h:slice { {}, { h.shape[2], h.shape[2] } }:reshape(h.shape[1], 12)), y)
    opt:step(loss)
    return loss
  end, dc.randn "f32[4, 9, 6]", labels(4, 4))
end
do
  local width, heads, vocabulary = 32, 4, 40
  local block = nn.TransformerEncoder(width, heads, { layers = 2, feedforward = 64, activation = "gelu",
    norm_first = true, dropout = 0.1, batch_first = true })
  local tokens, positions, head = nn.Embedding(vocabulary, width), nn.Embedding(16, width),
    nn.Linear(width, vocabulary)
  -- Adam would divide the gradient of the keys' bias, which is 0 but for rounding, by its size.
  local opt = optim.SGD(parameters { block, tokens, positions, head }, { lr = 0.1, momentum = 0.9 })
  add("GPT, SGD", "step(x: i32[n, t], y: i32[n, t]) -> f32[]", function(x, y)
    local h = tokens(x) + positions(dc.iota "i32[16]"):reshape(1, 16, width)
    h = block(h, { causal = true })
    local loss = nn.cross_entropy(head(h):reshape(-1, vocabulary), y:reshape(-1))
    opt:step(loss)
    return loss
  end, labels(48, 37):reshape(3, 16), labels(48, 31):reshape(3, 16))
end

local count = 0
for _, case in ipairs(cases) do
  if case.name:find(pattern, 1, true) then
    case.f(table.unpack(case.args)) -- compiled for these sizes
    count = count + 1
    write(("%s/%d"):format(folder, count), case.name, case.f, case.args, case.args, case.near)
  end
end
print(("%d programs in %s"):format(count, folder))
