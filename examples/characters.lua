-- A language model of characters: a small transformer learns a text and writes more of it.
--
--   deepc characters.lua
--   deepc characters.lua --steps 2000 --layers 6 FILE
--
-- Shows layers in layers, attention, random numbers inside a typed function, clipping, and a rate
-- that rises and falls.

local dc = require "deepc"
local nn, optim, schedules = require "deepc.nn", require "deepc.optim", require "deepc.schedules"

local options, files = dc.options {
  about = "Learns a text character by character and writes more of it.",
  rest = "[FILE]",
  { "steps", 300, "of training", min = 1 },
  { "batch", 16, "windows of the text in a step", min = 1 },
  { "context", 64, "characters that the model sees", min = 2 },
  { "width", 128, "of the model, a multiple of --heads", min = 1 },
  { "heads", 4, "of attention", min = 1 },
  { "layers", 4, "of attention and MLP", min = 1 },
  { "lr", 3e-3, "highest learning rate", min = 0 },
  { "sample", 300, "characters to write at the end", min = 0 },
  { "seed", 0, "of everything" },
}
dc.seed(options.seed)

-- ---- the text, as numbers ----

local file = assert(io.open(files[1] or "/usr/share/common-licenses/GPL-3", "rb"))
local text = file:read "a"
file:close()

local alphabet, code, numbers = {}, {}, {}
for i = 1, #text do
  local c = text:sub(i, i)
  if not code[c] then
    alphabet[#alphabet + 1] = c
    code[c] = #alphabet - 1
  end
  numbers[i] = code[c]
end
local all = dc.tensor(numbers, "i32")

-- ---- the model ----

local Attention = nn.class "Attention"

function Attention:init(width, heads)
  self.heads = heads
  self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
end

function Attention:forward(x)
  local b, t, d = x:size(1), x:size(2), x:size(3)
  local function heads(v)
    return v:reshape(b, t, self.heads, d // self.heads):permute(1, 3, 2, 4)
  end
  local q, k, v = self.into(x):split(3, 3)
  local score = heads(q):matmul(heads(k):transpose()) / (d // self.heads) ^ 0.5
  local past = dc.ones(("bool[%d, %d]"):format(t, t)):tril()
  local weight = dc.where(past, score, -1e9):softmax(-1)
  return self.out(weight:matmul(heads(v)):permute(1, 3, 2, 4):reshape(b, t, d))
end

local Block = nn.class "Block"

function Block:init(width, heads)
  self.attention = nn.Sequential { nn.LayerNorm(width), Attention(width, heads) }
  self.mlp = nn.Sequential { nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width) }
end

function Block:forward(x)
  x = x + self.attention(x)
  return x + self.mlp(x)
end

local Model = nn.class "Model"

function Model:init(o)
  local place = ("f32[%d, %d]"):format(o.context, o.width)
  self.letter = nn.Embedding(#alphabet, o.width)
  self.place = dc.param(place, nn.init.normal(place, { std = 0.02 }))
  self.blocks = {}
  for i = 1, o.layers do
    self.blocks[i] = Block(o.width, o.heads)
  end
  self.head = nn.Sequential { nn.LayerNorm(o.width), nn.Linear(o.width, #alphabet) }
end

function Model:forward(x)
  local y = self.letter(x) + self.place
  for _, block in ipairs(self.blocks) do
    y = block(y)
  end
  return self.head(y)
end

-- ---- the two functions, checked before any training ----

local net = Model(options)
local opt = optim.AdamW(net:parameters(), { weight_decay = 0.1, clip_norm = 1 })

-- Windows of the text at random places; each character is to be told from those before it.
local step = dc.fn("step(letters: i32[n], lr: f32[]) -> f32[]", function(letters, lr)
  local from = dc.randint(("i32[%d, 1]"):format(options.batch), { high = #letters - options.context })
  local window = letters:take(from + dc.iota(options.context + 1), 1)
  local loss = nn.cross_entropy(net(window[{ {}, { 1, -2 } }]), window[{ {}, { 2, -1 } }])
  opt:step(loss, { lr = lr })
  return loss
end, { n = #text })

-- The largest of the logits with noise of Gumbel's distribution added is a draw from their softmax.
local draw = dc.fn(("draw(x: i32[1, %d], at: i32[]) -> i32[]"):format(options.context), function(x, at)
  local logits = net(x)[1]:take(at, 1)
  local noise = -(-dc.rand(logits, { low = 1e-6 }):log()):log()
  return (logits + noise):argmax(1)
end)

-- ---- training ----

local warm = math.min(20, options.steps)
local fall = schedules.cosine { lr = options.lr, steps = options.steps, final = options.lr / 10 }
local rate = schedules.warmup(warm, fall)
local shown, mean = {}, nil
for i in dc.progress(options.steps, { title = "step", size = options.batch * options.context, metrics = shown }) do
  shown.loss = step(all, rate(i)):item()
  mean = mean and 0.95 * mean + 0.05 * shown.loss or shown.loss
end
print(("%d characters of %d kinds, loss %.3f"):format(#text, #alphabet, mean))

-- ---- writing ----

local window, written = { code[text:sub(1, 1)] }, {}
for i = 2, options.context do
  window[i] = 0
end
for i = 1, options.sample do
  local at = math.min(i, options.context)
  local letter = draw({ window }, at - 1):item()
  written[i] = alphabet[letter + 1]
  if at == options.context then
    table.move(window, 2, at, 1)
    window[at] = letter
  else
    window[at + 1] = letter
  end
end
print(table.concat(written))
