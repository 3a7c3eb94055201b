-- Word vectors: skip-grams with negative sampling on the King James Bible.
--
--   deepc word_vectors.lua
--   deepc word_vectors.lua sword river seven
--   deepc word_vectors.lua --plot words.svg
--   deepc word_vectors.lua --checkpoint words.safetensors --resume
--
-- Mikolov et al., Distributed Representations of Words and Phrases, 2013. The vector of a word is trained to tell the
-- words around it from words drawn at random, so words that are used alike get similar vectors: all ten pairs that are
-- looked up at the end, gold and silver for one, are among the ten nearest words of each other. 5 seconds on two cores.
-- The text is that of Debian's bible-kjv.

local dc = require "deepc"
local nn, optim, data = require "deepc.nn", require "deepc.optim", require "deepc.data"
local random, train = require "deepc.random", require "deepc.train"
local linalg, plot = require "deepc.linalg", require "deepc.plot"

local options, asked = dc.options {
  about = "Learns vectors of the words of the King James Bible; prints the words nearest to those given.",
  rest = "[WORD...]",
  { "epochs", 5, "passes over the pairs of words", min = 1 },
  { "batch", 2048, "pairs in a step", min = 1 },
  { "width", 64, "numbers in a vector", min = 1 },
  { "window", 2, "words on each side of a word that are paired with it", min = 1 },
  { "negatives", 5, "random words for each pair", min = 1 },
  { "least", 20, "times that a word occurs; rarer ones are left out", min = 1 },
  { "lr", 2e-3, "learning rate", min = 0 },
  { "seed", 0, "of everything" },
  { "quick", false, "the five books of Moses, shorter vectors" },
  { "plot", nil, "draws some words in a plane, .svg or .png", value = "FILE" },
  { "checkpoint", nil, "keeps all that is needed to go on", value = "FILE" },
  { "resume", false, "goes on from the checkpoint, if there is one", needs = "checkpoint" },
}
if options.quick then
  options.width, options.batch, options.lr = 32, 512, 5e-3
end
dc.seed(options.seed)

-- ---- the text, as numbers of words ----

local words = {}
local last = options.quick and "deut34:12" or "rev22:21"
local pipe <close> = assert(io.popen(("bible -f gen1:1-%s 2>/dev/null"):format(last)))
for verse in pipe:lines() do
  for word in verse:lower():gsub("^%S+", ""):gmatch "%a+" do -- without Ge1:1 in front
    words[#words + 1] = word
  end
end
if #words == 0 then
  dc.fail "the program bible gives no text; Debian's package bible-kjv has it"
end

local vocabulary = data.Vocabulary(words, { least = options.least, unknown = "?" })
local numbers = vocabulary:encode(words)
local counts = numbers:bincount({ bins = #vocabulary }):cast("f32"):put(vocabulary.unknown + 1, 0)

-- Of a word that is more than a thousandth of the text, only a part is kept.
local kept = dc.where(counts:gt(0), (1e-3 * #numbers / counts):sqrt(), 0):take(numbers)
local text, size = numbers:compact(dc.rand(kept):lt(kept), { bound = #numbers })
text = text[{ { 1, size:item() } }]

-- Each word with each word near it.
local centers, contexts = {}, {}
for distance = 1, options.window do
  local left, right = text[{ { 1, -distance - 1 } }], text[{ { distance + 1, -1 } }]
  table.move({ left, right }, 1, 2, #centers + 1, centers)
  table.move({ right, left }, 1, 2, #contexts + 1, contexts)
end

-- ---- training ----

local Vectors = nn.class "Vectors"

function Vectors:init(count, width)
  self.center, self.context = nn.Embedding(count, width), nn.Embedding(count, width)
  self.center.weight:set(nn.init.uniform(self.center.weight, { low = -0.5 / width, high = 0.5 / width }))
  self.context.weight:set(nn.init.zeros(self.context.weight))
end

local net = Vectors(#vocabulary, options.width)
local frequency = counts ^ 0.75

train.fit {
  model = net, optimizer = optim.Adam(net:parameters(), { lr = options.lr }),
  data = data.set(dc.concat(centers), dc.concat(contexts)), batch = options.batch, epochs = options.epochs,
  loss = function(center, context)
    local drawn = random.multinomial(frequency, #center * options.negatives, { replacement = true })
    local vector = net.center(center)
    local near = (vector * net.context(context)):sum(2)
    local far = (vector:reshape(#center, 1, -1) * net.context(drawn:reshape(#center, -1))):sum(3)
    return ((-near):softplus() + far:softplus():sum(2)):mean()
  end,
  checkpoint = options.checkpoint, resume = options.resume, on_epoch = train.report,
}

-- ---- the nearest words, by the cosine of the angle between vectors ----

local unit = nn.normalize(net.center.weight):clone()

local function nearest(word)
  local _, at = unit:matmul(unit[vocabulary:number(word) + 1]):top_k(11)
  return vocabulary:decode(at[{ { 2, -1 } }]) -- behind the word itself
end

for _, word in ipairs(#asked > 0 and asked or { "king", "father", "seven", "water" }) do
  print(word .. ": " .. (vocabulary:number(word) ~= vocabulary.unknown and nearest(word) or "too rare"))
end

local function near(a, b)
  return (" " .. nearest(a) .. " "):find(" " .. b .. " ", 1, true)
end

local alike = [[abraham isaac, blue purple, brass iron, bread wine, gold silver, heaven earth, morning evening,
  moses aaron, north south, wheat barley]]
local found, all = 0, 0
for a, b in alike:gmatch "(%a+) (%a+)" do
  found, all = found + (near(a, b) and near(b, a) and 1 or 0), all + 1
end
print(("%d of %d pairs are among the ten nearest of each other"):format(found, all))

-- The plane in which the words of some kinds lie furthest apart: their first two principal components.
if options.plot then
  local kinds = {
    { "numbers", "two three four five six seven eight nine ten twenty" },
    { "materials", "gold silver brass iron wood stone linen purple scarlet" },
    { "people", "father mother brother sister son daughter wife" },
    { "animals", "ox ass sheep goat lamb ram bullock camels" },
  }
  local series, rows = {}, {}
  for i, kind in ipairs(kinds) do
    local ids = vocabulary:encode(kind[2])
    series[i], rows[i] = { name = kind[1], count = #ids }, unit:take(ids)
  end
  local words_of_all = dc.concat(rows)
  local centered = words_of_all - words_of_all:mean(1)
  local _, _, axes = linalg.svd(centered)
  local place, first = centered:matmul(axes[{ { 1, 2 } }]:transpose()), 1
  for _, s in ipairs(series) do
    local some = place[{ { first, first + s.count - 1 } }]
    s.x, s.y, first, s.count = some[{ {}, 1 }], some[{ {}, 2 }], first + s.count, nil
  end
  plot.points(options.plot, series, { title = "Words of the King James Bible", width = 560, height = 440 })
end
