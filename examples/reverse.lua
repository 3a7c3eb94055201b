-- A transformer that learns to write words backwards: "abc>" is to be followed by "cba.".
--
--   deepc reverse.lua
--   deepc reverse.lua --steps 2000 --longest 12
--
-- Shows bounded dims: words of any length train and are answered by functions that are compiled once. And
-- generation: a prompt fills a cache of keys and values, a loop inside the graph writes until the stop.

local dc = require "deepc"
local nn, optim, schedules = require "deepc.nn", require "deepc.optim", require "deepc.schedules"

local options = dc.options {
  about = "Learns to write words backwards.",
  { "steps", 800, "of training", min = 1 },
  { "batch", 64, "words in a step", min = 1 },
  { "longest", 8, "letters of a word", min = 2 },
  { "width", 64, "of the model, a multiple of --heads", min = 1 },
  { "heads", 4, "of attention", min = 1 },
  { "layers", 2, "of attention and MLP", min = 1 },
  { "lr", 3e-3, "highest learning rate", min = 0 },
}
dc.seed(0)

local LETTERS, ARROW, STOP = 8, 8, 9
local KINDS = 10
local LINE = 2 * options.longest + 2 -- a word, the arrow, the word again, the stop

-- ---- the model ----

local Block = nn.class "Block"

function Block:init(width, heads)
  self.width, self.heads, self.each = width, heads, width // heads
  self.norm1, self.into, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
  self.mlp = nn.Sequential { nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width) }
  self.keys = dc.state(("f32[%d, %d, %d]"):format(LINE, heads, self.each))
  self.values = dc.state(("f32[%d, %d, %d]"):format(LINE, heads, self.each))
end

-- Queries, keys and values of each position, [batch, t, heads, each].
function Block:project(x)
  local all = self.into(self.norm1(x)):reshape(#x, x:size(2), 3, self.heads, self.each)
  return all[{ {}, {}, 1 }], all[{ {}, {}, 2 }], all[{ {}, {}, 3 }]
end

function Block:finish(x, q, k, v, visible)
  local score = dc.einsum("b t h d, b s h d -> b h t s", q, k) / self.each ^ 0.5
  local weight = dc.where(visible, score, -1e9):softmax(-1)
  local y = dc.einsum("b h t s, b s h d -> b t h d", weight, v)
  x = x + self.out(y:reshape(#x, x:size(2), self.width))
  return x + self.mlp(x)
end

function Block:forward(x, keep)
  local q, k, v = self:project(x)
  local t = x:size(2)
  if keep then -- of a prompt, for what is written behind it
    self.keys:set(self.keys:put({ { 1, t } }, k[1]))
    self.values:set(self.values:put({ { 1, t } }, v[1]))
  end
  local place = dc.iota(t)
  return self:finish(x, q, k, v, place:reshape(1, t):le(place:reshape(t, 1)))
end

-- One letter at position p; what stands before it is in the cache, which changes in place.
function Block:step(x, p)
  local q, k, v = self:project(x)
  self.keys:set(self.keys:put(p, k[1][1]))
  self.values:set(self.values:put(p, v[1][1]))
  return self:finish(x, q, self.keys:reshape(1, LINE, self.heads, self.each),
    self.values:reshape(1, LINE, self.heads, self.each), dc.iota(LINE):le(p))
end

local Model = nn.class "Model"

function Model:init(o)
  local place = ("f32[%d, %d]"):format(LINE, o.width)
  self.letter, self.place = nn.Embedding(KINDS, o.width), dc.param(place, nn.init.normal(place, { std = 0.02 }))
  self.blocks = {}
  for i = 1, o.layers do
    self.blocks[i] = Block(o.width, o.heads)
  end
  self.head = nn.Sequential { nn.LayerNorm(o.width), nn.Linear(o.width, KINDS) }
end

function Model:forward(letters, keep)
  local x = self.letter(letters) + self.place[{ { 1, letters:size(2) } }]
  for _, block in ipairs(self.blocks) do
    x = block(x, keep)
  end
  return self.head(x)
end

function Model:step(letter, p)
  local x = self.letter(letter:reshape(1, 1)) + self.place:take(p, 1)
  for _, block in ipairs(self.blocks) do
    x = block:step(x, p)
  end
  return self.head(x)[1][1]
end

-- ---- the functions, checked before any training ----

local net = Model(options)
local opt = optim.AdamW(net:parameters(), { weight_decay = 0.01, clip_norm = 1 })

-- Lines of n letters each; what follows the arrow is to be told.
local train = dc.fn(("train(words: i32[%d, n <= %d], lr: f32[]) -> f32[]"):format(options.batch, options.longest),
  function(words, lr)
    local n = words:size(2)
    local function column(letter) return dc.full(("i32[%d, 1]"):format(options.batch), letter) end
    local line = dc.concat({ words, column(ARROW), words:flip(2), column(STOP) }, 2)
    local logits = net(line[{ {}, { 1, -2 } }])
    local loss = nn.cross_entropy(logits[{ {}, { n + 1, -1 } }], line[{ {}, { n + 2, -1 } }])
    opt:step(loss, { lr = lr })
    return loss
  end)

local answer = dc.fn(("answer(prompt: i32[t <= %d]) -> i32[%d], i32[]"):format(options.longest + 1, LINE),
  function(prompt)
    local logits = net(prompt:reshape(1, -1), true)[1]
    local begun = { letter = logits[-1]:argmax(1), line = dc.zeros(("i32[%d]"):format(LINE)),
      n = dc.full("i32[]", 0), p = dc.full("i32[]", 0) + #prompt }
    local c = dc.loop(function(c) return c.letter:ne(STOP) & c.p:lt(LINE) end, function(c)
      return { letter = net:step(c.letter, c.p):argmax(1), line = c.line:put(c.n, c.letter), n = c.n + 1, p = c.p + 1 }
    end, begun)
    return c.line, c.n
  end)

-- ---- training ----

local rate = schedules.warmup(20, schedules.cosine { lr = options.lr, steps = options.steps, final = options.lr / 10 })
local shown = {}
for i in dc.progress(options.steps, { title = "step", metrics = shown }) do
  local n = 1 + i % options.longest
  local words = dc.randint(("i32[%d, %d]"):format(options.batch, n), { high = LETTERS })
  shown.loss = train(words, rate(i)):item()
end

-- ---- answers ----

local function text(list)
  local out = {}
  for i, k in ipairs(list) do
    out[i] = k == ARROW and ">" or string.char(97 + k)
  end
  return table.concat(out)
end

local right, asked = 0, 100
for i = 1, asked do
  local n = 1 + i % options.longest
  local word = dc.randint(("i32[%d]"):format(n), { high = LETTERS, seed = i }):totable()
  word[n + 1] = ARROW
  local line, written = answer(word)
  local reply = text(line[{ { 1, math.max(written:item(), 1) } }]:totable())
  right = right + (reply == text(word):reverse():sub(2) and 1 or 0)
  if i <= 3 then
    print(text(word) .. reply)
  end
end
print(("%d of %d words are right"):format(right, asked))
