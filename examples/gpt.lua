-- A GPT of characters that learns the King James Bible and writes more of it.
--
--   deepc gpt.lua
--   deepc gpt.lua --steps 3000 --layers 4 --dropout 0.1
--   deepc gpt.lua --checkpoint gpt.safetensors --resume
--
-- Radford et al., Improving Language Understanding by Generative Pre-Training, 2018: a transformer that sees the past
-- alone, here of 416,000 parameters. It reaches less than 1.60 nats a character on the last tenth of the text, in a
-- minute and a half on two cores. The text is that of Debian's bible-kjv.

local dc = require "deepc"
local nn, optim, schedules = require "deepc.nn", require "deepc.optim", require "deepc.schedules"
local data, random, train = require "deepc.data", require "deepc.random", require "deepc.train"

local options = dc.options {
  about = "Trains a GPT of characters on the King James Bible.",
  { "steps", 800, "of training", min = 1 },
  { "batch", 32, "windows of the text in a step", min = 1 },
  { "context", 128, "characters in a window", min = 2 },
  { "width", 128, "of the model, a multiple of --heads", min = 1 },
  { "heads", 4, "of attention", min = 1 },
  { "layers", 2, "blocks of attention and MLP", min = 1 },
  { "dropout", 0.0, "probability that a number is left out while training", min = 0 },
  { "lr", 4e-3, "highest learning rate", min = 0 },
  { "write", 400, "characters to write at the end", min = 1 },
  { "seed", 0, "of everything" },
  { "quick", false, "the first tenth of the text, a smaller model" },
  { "checkpoint", nil, "keeps all that is needed to go on", value = "FILE" },
  { "every", 100, "steps between two checkpoints", min = 1, needs = "checkpoint" },
  { "resume", false, "goes on from the checkpoint, if there is one", needs = "checkpoint" },
}
if options.quick then
  options.steps, options.batch, options.context, options.width, options.layers = 120, 16, 64, 64, 1
end
dc.seed(options.seed)

-- ---- the text, in windows ----

local pipe <close> = assert(io.popen "bible -f gen1:1-rev22:21 2>/dev/null")
local text = pipe:read "a"
if #text == 0 then
  dc.fail "the program bible gives no text; Debian's package bible-kjv has it"
end
text = options.quick and text:sub(1, #text // 10) or text
local vocabulary = data.Vocabulary(text, { split = "characters" })
local letters = vocabulary:encode(text)

-- Rows of a part of the text, one behind the other; each has one letter more than the model sees.
local function windows(part)
  local size = options.context + 1
  local rows = #part // size
  return data.set(part[{ { 1, rows * size } }]:reshape(rows, size))
end
local split = #letters * 9 // 10
local learn, valid = windows(letters[{ { 1, split } }]), windows(letters[{ { split + 1, -1 } }])

-- ---- the model ----

local GPT = nn.class "GPT"

function GPT:init(o)
  self.embed = nn.Embedding(#vocabulary, o.width)
  self.positions = nn.SinusoidalPositions(o.width, { batch_first = true })
  self.blocks = nn.TransformerEncoder(o.width, o.heads, { layers = o.layers, feedforward = 4 * o.width,
    activation = "gelu", norm_first = true, dropout = o.dropout, batch_first = true })
  self.head = nn.Linear(o.width, #vocabulary)
end

function GPT:forward(x)
  return self.head(self.blocks(self.positions(self.embed(x)), { causal = true }))
end

local net = GPT(options)

-- Each letter is told from those before it.
local function loss(window)
  return nn.cross_entropy(net(window[{ {}, { 1, -2 } }]), window[{ {}, { 2, -1 } }])
end

-- Draws a letter behind the last ones of the text, again and again.
net:eval()
local signature = ("write(last: i32[%d]) -> i32[%d]"):format(options.context, options.write)
local write = dc.fn(signature, function(last)
  local _, written = dc.scan(function(seen)
    local letter = random.categorical(net(seen:reshape(1, -1))[{ 1, -1 }])
    return dc.concat { seen[{ { 2, -1 } }], letter:reshape(1) }, letter
  end, last, nil, { length = options.write })
  return written
end)

-- ---- training, then writing ----

local run = train.fit {
  model = net, optimizer = optim.AdamW(net:parameters(), { weight_decay = 0.1, clip_norm = 1 }), loss = loss,
  schedule = schedules.warmup(50, schedules.cosine { lr = options.lr, steps = options.steps, final = options.lr / 10 }),
  data = learn, batch = options.batch, steps = options.steps, evaluate = valid, on_epoch = train.report,
  checkpoint = options.checkpoint, every = options.checkpoint and options.every, resume = options.resume,
}
net:eval()
print(vocabulary:decode(write(letters[{ { split - options.context + 1, split } }])))
print(("loss %.4f nats a character"):format(run.history[#run.history]["eval.loss"]))
