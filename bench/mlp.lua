-- One side of bench/mlp.py: trains a multilayer perceptron on made-up data, a number of steps for
-- each line read from standard input, and answers with the loss. Weights and data follow formulas
-- that the other side repeats, so that the losses can be compared.
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local batch = tonumber(arg[1]) or 64
local sizes = { 784, tonumber(arg[2]) or 128, tonumber(arg[3]) or 64, 10 }

local layers = { nn.Flatten() }
for i = 1, #sizes - 1 do
  layers[#layers + 1] = nn.Linear(sizes[i], sizes[i + 1])
  if i < #sizes - 1 then
    layers[#layers + 1] = nn.ReLU()
  end
end
local net = nn.Sequential(layers)

local function filled(shape, scale)
  if #shape == 1 then
    local row = {}
    for i = 1, shape[1] do row[i] = scale * math.sin(i) end
    return row
  end
  local rows = {}
  for r = 1, shape[1] do
    local row = {}
    for c = 1, shape[2] do row[c] = scale * math.sin((r - 1) * shape[2] + c) end
    rows[r] = row
  end
  return rows
end

for _, p in ipairs(net:parameters()) do
  p:set(dc.tensor(filled(p.shape, 1 / math.sqrt(p.shape[1]))))
end
local opt = optim.Adam(net:parameters(), { lr = 1e-3 })

local step = dc.fn(("step(x: u8[%d, 28, 28], y: i32[%d]) -> f32[]"):format(batch, batch), function(x, y)
  local loss = nn.cross_entropy(net(x:cast "f32" / 255), y)
  opt:step(loss)
  return loss
end)

local images, labels = {}, {}
for b = 1, batch do
  local image = {}
  for r = 1, 28 do
    local row = {}
    for c = 1, 28 do row[c] = ((b - 1) * 784 + (r - 1) * 28 + c - 1) * 37 % 256 end
    image[r] = row
  end
  images[b], labels[b] = image, (b - 1) % 10
end
local x = dc.tensor(images, ("u8[%d, 28, 28]"):format(batch))
local y = dc.tensor(labels, ("i32[%d]"):format(batch))

for line in io.lines() do
  local loss
  for _ = 1, tonumber(line) do loss = step(x, y) end
  print(("%.9g"):format(loss:item()))
  io.flush()
end
