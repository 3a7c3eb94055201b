-- Models of others beside what transformers computed (tests/peers/models): whole texts, padding, steps with a cache;
-- files that do not fit, mistakes.
local lu = require "luaunit"
local dc = require "deepc"
local models = require "deepc.models"
local check = require "tests.lua.check"

local fails = check.fails

TestModels = {}

local cases = os.getenv "DEEPC_MODELS" or package.path:match "^(.-)/%.%./%?%.lua" .. "/peers/models/cases/"

local function load(name, options)
  local net = models.load(cases .. name, options)
  return net, dc.load(cases .. name .. "/case.safetensors")
end

-- The largest difference, relative to the largest number; of rows that a mask leaves, [batch, time].
local function difference(got, want, mask)
  lu.assertEquals(got.shape, want.shape)
  local d = (got:cast "f32" - want):abs()
  if mask then
    d = d * mask:ne(0):cast("f32"):reshape(mask.shape[1], mask.shape[2], 1)
  end
  return d:max():item() / math.max(want:abs():max():item(), 1e-3)
end

local function near(got, want, tolerance, what, mask)
  local d = difference(got, want, mask)
  lu.assertTrue(d <= tolerance, ("%s: %g"):format(what, d))
end

local function write(path, text)
  local f <close> = assert(io.open(path, "wb"))
  f:write(text)
end

-- A folder of its own, removed by the function that is returned.
local function folder()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir '" .. path .. "'"))
  return path, function() os.execute("rm -r '" .. path .. "'") end
end

local DECODERS = { "llama", "llama3", "llama_linear", "llama_yarn", "mistral", "qwen2", "qwen3", "gemma", "gemma2",
  "gemma3", "gpt2" }

local TINY = { vocab_size = 40, hidden_size = 16, intermediate_size = 24, num_hidden_layers = 2,
  num_attention_heads = 4,
  num_key_value_heads = 2, initializer_range = 0.3 }

-- A prompt, single tokens and some more, behind each other.
local function compare_steps(net, cache, ids, want)
  local from = 1
  for _, n in ipairs { 4, 1, 1, 5, 1, 1 } do
    near(net:step(ids[{ {}, { from, from + n - 1 } }], cache), want[{ {}, from + n - 1 }], 1e-5, "step " .. from)
    from = from + n
  end
  lu.assertEquals(cache:length(), 13)
end

for _, name in ipairs { "bert", "roberta" } do
  TestModels["test_" .. name] = function()
    local net, case = load(name)
    local f = dc.fn("f(ids: i32[2, n <= 16], mask: i32[2, n]) -> f32[2, n, 16], f32[2, 16]", function(ids, mask)
      return net(ids, { mask = mask })
    end)
    for _, n in ipairs { 1, 7, 13 } do
      local ids, mask = case["ids" .. n], case["mask" .. n]
      local hidden, pooled = net(ids)
      near(hidden, case["hidden" .. n], 1e-5, "hidden" .. n)
      near(pooled, case["pooled" .. n], 1e-5, "pooled" .. n)
      hidden, pooled = f(ids, mask)
      near(hidden, case["hiddenmasked" .. n], 1e-5, "masked" .. n, mask)
      near(pooled, case["pooledmasked" .. n], 1e-5, "masked" .. n)
    end
  end
end

-- Heads: classes of texts and of tokens, hidden tokens.
for name, sizes in pairs { bert_classes = "2, 3", bert_tokens = "2, n, 5", bert_mask = "2, n, 40",
  roberta_classes = "2, 3",
  roberta_mask = "2, n, 40", distilbert_classes = "2, 3", distilbert_mask = "2, n, 40" } do
  TestModels["test_" .. name] = function()
    local net, case = load(name)
    local f = dc.fn(("f(ids: i32[2, n <= 16], mask: i32[2, n]) -> f32[%s]"):format(sizes), function(ids, mask)
      local y = net(ids, { mask = mask })
      return y
    end)
    for _, n in ipairs { 1, 7, 13 } do
      local ids, mask = case["ids" .. n], case["mask" .. n]
      near(net(ids), case["logits" .. n], 1e-5, "logits" .. n)
      near(f(ids, mask), case["logitsmasked" .. n], 1e-5, "masked" .. n, sizes:find "n" and mask)
    end
    lu.assertEquals(net:embed(case.ids7).shape, { 2, 8 })
  end
end

function TestModels:test_distilbert()
  local net, case = load "distilbert"
  for _, n in ipairs { 1, 7, 13 } do
    near((net(case["ids" .. n])), case["hidden" .. n], 1e-5, "hidden" .. n)
    near((net(case["ids" .. n], { mask = case["mask" .. n] })), case["hiddenmasked" .. n], 1e-5, "masked" .. n,
      case["mask" .. n])
  end
  fails("config.head is 'questions'; known are classes, mask, tokens", models.distilbert, { head = "questions" })
  lu.assertEquals(models.bert({ vocab_size = 4, hidden_size = 4, num_hidden_layers = 1, num_attention_heads = 1,
    intermediate_size = 4, head = "classes", num_labels = 3 })(dc.zeros "i32[2, 3]").shape, { 2, 3 })
end

for _, name in ipairs(DECODERS) do
  TestModels["test_" .. name] = function()
    local net, case = load(name)
    local f = dc.fn("f(ids: i32[2, n <= 16], mask: i32[2, n]) -> f32[2, n, 40]", function(ids, mask)
      local y = net(ids, { mask = mask })
      return y
    end)
    for _, n in ipairs { 1, 7, 13 } do
      local ids, mask = case["ids" .. n], case["mask" .. n]
      near(net(ids), case["logits" .. n], 1e-5, "logits" .. n)
      near(f(ids, mask), case["logitsmasked" .. n], 1e-5, "masked" .. n, mask)
    end
    compare_steps(net, net:cache(16, { batch = 2 }), case.ids13, case.logits13)
  end
end

-- Of a model that sees pictures the part that writes.
function TestModels:test_gemma3_pictures()
  local net, case = load "gemma3_pictures"
  near(net(case.ids7), case.logits7, 1e-5, "logits")
  lu.assertEquals(net.config.stop, { 1 })
end

function TestModels:test_mamba()
  local net, case = load "mamba"
  local f = dc.fn("f(ids: i32[2, n <= 16]) -> f32[2, n, 40]", function(ids)
    local y = net(ids)
    return y
  end)
  for _, n in ipairs { 1, 7, 13 } do
    near(net(case["ids" .. n]), case["logits" .. n], 1e-5, "logits" .. n)
    near(f(case["ids" .. n]), case["logits" .. n], 1e-5, "logits" .. n)
  end
  local cache = net:cache(16, { batch = 2 })
  compare_steps(net, cache, case.ids13, case.logits13)
  fails("3 tokens of 13: a state of fixed size forgets all or nothing", cache.keep, cache, 3)
  cache:keep(0)
  compare_steps(net, cache, case.ids13, case.logits13)
  lu.assertEquals(#models.generate(net, { 3, 1 }, { max = 5, stop = {} }), 5)
  fails("unknown option 'mask'", net, case.ids7, { mask = case.mask7 })
  fails("cache is no cache of this model", net, case.ids7, { cache = models.llama(TINY):cache(4) })
end

function TestModels:test_whisper()
  local net, case = load "whisper"
  near(net:encode(case.x), case.hidden, 1e-5, "hidden")
  near(net(case.x, case.ids13), case.logits13, 1e-5, "logits")
  near(net(case.x, case.ids13, { last = true }), case.logits13[{ {}, 13 }], 1e-5, "logits")
  local cache = net:cache(20, { batch = 2 })
  fails("a cache that has listened is needed", net.step, net, case.ids13, cache)
  compare_steps(net, net:listen(case.x, cache), case.ids13, case.logits13)
  compare_steps(net, net:listen(case.x, cache), case.ids13, case.logits13)
  local one = net:listen(case.x[{ { 1, 1 } }], net:cache(20))
  lu.assertEquals(#models.generate(net, { 1 }, { cache = one, max = 5, stop = {} }), 5)
  fails("features are f32[2, 6, 10]; [batch, 6, 20] is needed", net, case.x[{ {}, {}, { 1, 10 } }], case.ids13)
  fails("21 tokens; the model has 20 positions", net.cache, net, 21)
  local mel = models.whisper_features(case.wave, { seconds = 2 })
  lu.assertEquals(mel.shape, { 1, 80, 200 })
  near(mel[{ {}, {}, { 1, 40 } }], case.mel, 1e-4, "mel")
end

for _, name in ipairs { "mamba", "whisper" } do
  TestModels["test_train_" .. name] = function()
    local nn, optim = require "deepc.nn", require "deepc.optim"
    local net, case = load(name)
    local opt = optim.Adam(net:train():parameters(), { lr = 5e-3 })
    local step = dc.fn("step(ids: i32[2, 13]) -> f32[]", function(ids)
      local y = name == "whisper" and net(case.x, ids) or net(ids)
      local loss = nn.cross_entropy(y[{ {}, { 1, 12 } }], ids[{ {}, { 2, 13 } }])
      opt:step(loss)
      return loss
    end)
    local first = step(case.ids13):item()
    for _ = 1, 15 do step(case.ids13) end
    lu.assertTrue(step(case.ids13):item() < 0.8 * first)
  end
end

-- ---- writing ----

-- One compilation for all lengths, and one for single tokens; the state is changed where it is.
function TestModels:test_steps_compile_once()
  local net = models.llama(TINY):eval()
  local cache = net:cache(300)
  local function body(ids)
    local y = net(ids, { cache = cache, last = true })
    return y
  end
  local one, several = dc.fn("one(ids: i32[1, 1]) -> f32[1, 40]", body),
    dc.fn("several(ids: i32[1, 1 <= n <= 64]) -> f32[1, 40]", body)
  for _, n in ipairs { 5, 64, 2 } do
    several(dc.zeros(("i32[1, %d]"):format(n)))
    one(dc.zeros "i32[1, 1]")
  end
  lu.assertEquals({ #one:info(), #several:info(), cache:length() }, { 1, 1, 74 })
  for _, f in ipairs { one, several } do
    local text = f:explain()
    if not text:find "run by the reference interpreter" then
      lu.assertStrContains(text, " 0 copies")
      lu.assertStrContains(text, "set in place  a state")
    end
  end
end

-- Where nothing but the library ran, the second call has nothing to look for; a layer of the script may count calls.
function TestModels:test_steps_are_traced_once()
  local net = models.llama(TINY):eval()
  local cache = net:cache(64)
  net:step({ 1, 2, 3 }, cache)
  local before = dc.stats().traces
  net:step({ 4, 5 }, cache)
  lu.assertTrue(dc.stats().traces - before <= 1) -- that of the function for one token
  net:step({ 6 }, cache)
  before = dc.stats().traces
  for i = 1, 20 do
    net:step(i % 3 == 0 and { 7, 8 } or { 9 }, cache)
  end
  lu.assertEquals(dc.stats().traces, before)
end

function TestModels:test_steps_with_a_layer_of_the_script_are_traced_twice()
  local nn = require "deepc.nn"
  local count = coroutine.wrap(function()
    for i = 1, math.huge do
      coroutine.yield(i)
    end
  end)
  local Counting = nn.class "Counting"
  function Counting:init(inner)
    self.inner = inner
  end
  function Counting:forward(x)
    return self.inner(x) * count()
  end
  local net = models.llama(TINY):eval()
  net.model.norm = Counting(net.model.norm)
  local cache = net:cache(64)
  net:step({ 1, 2 }, cache)
  fails("two traces of 'read' differ", net.step, net, { 3, 4 }, cache)
end

-- A long prompt is read in parts.
function TestModels:test_long_prompts()
  local net = models.llama(TINY):eval()
  local ids = dc.randint("i32[1, 300]", { high = 40, seed = 1 })
  near(net:step(ids, net:cache(300)), net(ids, { last = true }), 1e-5, "300 tokens")
end

function TestModels:test_caches_forget()
  local net = models.llama(TINY):eval()
  local cache = net:cache(8)
  net:step({ 1, 2, 3, 4, 5 }, cache)
  local want = net:step({ 6 }, cache)
  near(cache:keep(5) and net:step({ 6 }, cache), want, 1e-6, "kept")
  cache:keep(0)
  lu.assertEquals(cache:length(), 0)
  near(net:step({ 1, 2, 3, 4, 5, 6 }, cache), want, 1e-5, "anew")
  fails("the cache has room for 8 tokens: 6 are there, 3 more are given", net.step, net, { 1, 2, 3 }, cache)
  fails("9 tokens of 6", cache.keep, cache, 9)
  fails("the cache is of another model", net, dc.zeros "i32[1, 1]", { cache = models.gemma(TINY):cache(8) })
  fails("the cache is for a batch of 1", net.step, net, { { 1 }, { 2 } }, cache)
  fails("a mask and a cache do not go together", net, dc.zeros "i32[1, 1]",
    { cache = cache, mask = dc.ones "i32[1, 1]" })
end

function TestModels:test_floats_of_16_bits()
  for dtype, tolerance in pairs { f16 = 1e-2, bf16 = 4e-2 } do
    for _, name in ipairs { "llama", "gemma2", "qwen3" } do
      local net, case = load(name, { dtype = dtype })
      lu.assertEquals(net(case.ids7).dtype, dtype)
      near(net(case.ids7), case.logits7, tolerance, name)
      near(net:step(case.ids7, net:cache(8, { batch = 2 })), case.logits7[{ {}, 7 }], tolerance, name)
      local cache = net:cache(8, { batch = 2 })
      net:step(case.ids7[{ {}, { 1, 6 } }], cache)
      near(net:step(case.ids7[{ {}, { 7, 7 } }], cache), case.logits7[{ {}, 7 }], tolerance, name)
    end
    local net, case = load("bert", { dtype = dtype })
    near((net(case.ids7)), case.hidden7, tolerance, "bert")
  end
end

-- A text that is learned by heart; caches and gradients are not asked for together.
for _, name in ipairs(DECODERS) do
  TestModels["test_train_" .. name] = function()
    local nn, optim = require "deepc.nn", require "deepc.optim"
    local net, case = load(name)
    local opt = optim.Adam(net:train():parameters(), { lr = 5e-3 })
    local step = dc.fn("step(ids: i32[2, 13]) -> f32[]", function(ids)
      local loss = nn.cross_entropy(net(ids)[{ {}, { 1, 12 } }], ids[{ {}, { 2, 13 } }])
      opt:step(loss)
      return loss
    end)
    local first = step(case.ids13):item()
    for _ = 1, 15 do step(case.ids13) end
    lu.assertTrue(step(case.ids13):item() < 0.8 * first)
  end
end

local function greedy(net, ids, n)
  local text, new = { table.unpack(ids) }, {}
  for i = 1, n do
    new[i] = net(dc.tensor({ text }, "i32"), { last = true })[1]:argmax(1):item()
    text[#text + 1] = new[i]
  end
  return new
end

function TestModels:test_generate()
  local net = models.llama(TINY):eval()
  local want = greedy(net, { 3, 1, 4 }, 8)
  lu.assertEquals(models.generate(net, { 3, 1, 4 }, { max = 8 }), want)
  lu.assertEquals(models.generate(net, { 3, 1, 4 }, { max = 8, temperature = 0.7, top_k = 1 }), want)
  lu.assertEquals(models.generate(net, { 3, 1, 4 }, { max = 8, temperature = 1e-4, top_p = 0.9 }), want)
  lu.assertEquals(models.generate(net, { 3, 1, 4 }, { max = 8, top_p = 0, seed = 1 }), want)
  local both = models.generate(net, { { 3, 1, 4 }, { 5, 6, 7 } }, { max = 8 })
  lu.assertEquals(both, { want, greedy(net, { 5, 6, 7 }, 8) })
  local drawn = models.generate(net, { 3, 1, 4 }, { max = 12, temperature = 1.5, seed = 5 })
  lu.assertEquals(models.generate(net, { 3, 1, 4 }, { max = 12, temperature = 1.5, seed = 5 }), drawn)
  lu.assertNotEquals(models.generate(net, { 3, 1, 4 }, { max = 12, temperature = 1.5, seed = 6 }), drawn)
  -- Ends.
  local stopped = models.generate(net, { 3, 1, 4 }, { max = 12, temperature = 1.5, seed = 5, stop = drawn[4] })
  lu.assertTrue(#stopped < 4)
  local told = {}
  models.generate(net, { 3, 1, 4 }, { max = 8, on_token = function(token, i)
    told[i] = token
    return i < 3
  end })
  lu.assertEquals(told, { table.unpack(want, 1, 3) })
  -- Goes on where a cache ends.
  local cache = net:cache(32)
  local first = models.generate(net, { 3, 1, 4 }, { max = 4, cache = cache })
  lu.assertEquals(cache:length(), 6)
  lu.assertEquals(models.generate(net, { first[4] }, { max = 4, cache = cache }), { table.unpack(want, 5, 8) })
end

-- Texts of several lengths are written on as each would be alone.
function TestModels:test_padding_in_front()
  local prompts = { { 3, 1, 4, 1, 5 }, { 9, 2 }, { 6, 5, 3 } }
  for _, name in ipairs { "llama", "gpt2", "gemma2" } do
    local net = load(name)
    local want = {}
    for i, prompt in ipairs(prompts) do
      want[i] = models.generate(net, prompt, { max = 8, stop = {} })
    end
    lu.assertEquals(models.generate(net, prompts, { max = 8, stop = {} }), want, name)
  end
  local net = load "llama"
  local cache = net:cache(16, { batch = 2, padded = true })
  local both = net:step({ { 3, 1, 4 }, { 0, 0, 7 } }, cache, { padding = { 0, 2 } })
  near(both[{ { 2, 2 } }], net:step({ 7 }, net:cache(4)), 1e-5, "padded")
  fails("padding is for the first tokens of a cache", net.step, net, { { 1 }, { 1 } }, cache, { padding = { 0, 0 } })
  near(net:step({ { 3, 1, 4 }, { 0, 5, 7 } }, cache:keep(0), { padding = { 0, 1 } })[{ { 2, 2 } }],
    net:step({ 5, 7 }, net:cache(4)), 1e-5, "padded anew")
  fails("padding of text 2 is 3; a whole number from 0 to 2 is needed", net.step, net, { { 1, 2, 3 }, { 1, 2, 3 } },
    cache:keep(0), { padding = { 0, 3 } })
  fails("the cache takes no padding", net.step, net, { { 1 }, { 1 } }, net:cache(4, { batch = 2 }),
    { padding = { 0, 0 } })
  fails("unknown option 'padded'", function() load("mamba"):cache(4, { padded = true }) end)
  fails("takes no padding in front", function() load("whisper"):cache(4, { padded = true }) end)
end

-- A model that gives the same logits whatever it reads.
local function fixed(logits)
  local nn = require "deepc.nn"
  local Fixed = nn.class "Fixed"
  function Fixed:init() self.config, self.dtype = { vocab_size = #logits }, "f32" end
  function Fixed:cache() return self end
  function Fixed:step() return dc.tensor { logits } end
  return Fixed()
end

local function counts(logits, options)
  local seen = {}
  for i = 1, #logits do seen[i] = 0 end
  options.max, options.seed = 400, 3
  for _, token in ipairs(models.generate(fixed(logits), { 0 }, options)) do
    seen[token + 1] = seen[token + 1] + 1 / 400
  end
  return seen
end

function TestModels:test_sampling()
  local logits = { math.log(0.1), math.log(0.5), math.log(0.05), math.log(0.35) }
  check.close(counts(logits, { temperature = 1 }), { 0.1, 0.5, 0.05, 0.35 }, 0.06)
  check.close(counts(logits, { top_k = 2 }), { 0, 0.5 / 0.85, 0, 0.35 / 0.85 }, 0.06)
  check.close(counts(logits, { top_p = 0.8 }), { 0, 0.5 / 0.85, 0, 0.35 / 0.85 }, 0.06)
  check.close(counts(logits, { top_p = 0.9 }), { 0.1 / 0.95, 0.5 / 0.95, 0, 0.35 / 0.95 }, 0.06)
  check.close(counts(logits, { min_p = 0.5 }), { 0, 0.5 / 0.85, 0, 0.35 / 0.85 }, 0.06)
  check.close(counts(logits, { temperature = 0.5 }), { 0.01 / 0.385, 0.25 / 0.385, 0.0025 / 0.385, 0.1225 / 0.385 },
    0.06)
  check.close(counts(logits, { top_k = 3, top_p = 0.85, temperature = 1 }), { 0, 0.5 / 0.85, 0, 0.35 / 0.85 }, 0.06)
  -- What was there is less likely: token 0 is in the prompt.
  lu.assertEquals(models.generate(fixed { 2, 1.5, -1 }, { 0 }, { max = 3, repetition_penalty = 2 }), { 1, 0, 0 })
end

function TestModels:test_mistakes_of_calls()
  local net = models.llama(TINY):eval()
  fails("ids are f32[1, 3]; integers are needed", net, dc.ones "f32[1, 3]")
  fails("ids are i32[3]; [batch, time] is needed", net, dc.zeros "i32[3]")
  fails("mask is i32[1, 2], ids are [1, 3]", net, dc.zeros "i32[1, 3]", { mask = dc.ones "i32[1, 2]" })
  fails("top_p is a number from 0 to 1, not 2", models.generate, net, { 1 }, { top_p = 2 })
  fails("the prompt has no tokens", models.generate, net, {})
  fails("a model that writes is needed, not nil", models.generate, nil, { 1 })
  fails("stop is a token or a list of tokens", models.generate, net, { 1 }, { stop = "end" })
  fails("seed is a whole number", models.generate, net, { 1 }, { seed = 1.5 })
end

function TestModels:test_mistakes_of_configs()
  local function llama(more)
    local config = {}
    for _, t in ipairs { TINY, more } do
      for k, v in pairs(t) do config[k] = v end
    end
    return function() models.llama(config) end
  end
  fails("config.hidden_size is 'x'; a whole number from 1 to 16777216 is needed", llama { hidden_size = "x" })
  fails("config.hidden_size is 0; a whole number", llama { hidden_size = 0 })
  fails("config.hidden_act is 'tan'; known are gelu", llama { hidden_act = "tan" })
  fails("num_attention_heads of 4 does not divide into 3", llama { num_key_value_heads = 3 })
  fails("config.rope_type is 'dynamic'; known are default, factors, linear, llama3, yarn", llama { rope_scaling = {
    rope_type = "dynamic", factor = 2 } })
  fails("config.factor is nil; ", llama { rope_scaling = { rope_type = "linear" } })
  fails("the config has a quantization_config", llama { quantization_config = {} })
  fails("a config is a table with the names of config.json, not nil", models.llama)
  fails("config.vocab_size is nil", models.bert, {})
  fails('dtype is "f32", "f16", "bf16" or "f64", not ', models.llama, TINY, { dtype = "i8" })
end

-- Queries, keys and values are one product of few rows: as each by itself, also when weights have changed.
function TestModels:test_joined_weights_of_encoders()
  local net, want = load "bert"
  local few = want.ids7[{ { 1, 2 } }]
  local function encode(ids)
    local y = net(ids)
    return y
  end
  local f, g = dc.fn("f(ids: i32[2, 7])", encode), dc.fn("g(ids: i32[b <= 2, t <= 7])", encode)
  for _ = 1, 2 do
    near(f(few), encode(few), 1e-6, "few")
    near(g(few), encode(few), 1e-6, "bounded")
    local layer = net.encoder.layer[1].attention.self.key
    layer.weight:set(layer.weight * 2)
    layer.bias:set(layer.bias + 1)
  end
  near(f(few), encode(few), 1e-6, "changed")
  models.lora(net, { targets = { "query" } })
  net.encoder.layer[1].attention.self.query.lora_B.weight:set(1)
  near(f(few), encode(few), 1e-6, "adapters")
end

-- ---- adapters ----

-- Adapters of PEFT give what they give there; merged, saved and loaded again too.
function TestModels:test_adapters_of_peft()
  local want = dc.load(cases .. "llama_lora/case.safetensors")
  local net = models.load(cases .. "llama")
  local plain = net(want.ids7)
  models.load_lora(cases .. "llama_lora", net)
  near(net(want.ids7), want.logits7, 1e-5, "adapters")
  local path, remove = folder()
  models.save_lora(path, net)
  local names = {}
  for name in pairs(dc.load(path .. "/adapter_model.safetensors")) do names[name] = true end
  lu.assertTrue(names["base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"])
  local other = models.load_lora(path, models.load(cases .. "llama"))
  near(other(want.ids7), want.logits7, 1e-5, "saved")
  remove()
  near(net:step(want.ids7, net:cache(8, { batch = 2 })), want.logits7[{ {}, 7 }], 1e-5, "cache")
  models.merge_lora(net)
  near(net(want.ids7), want.logits7, 1e-5, "merged")
  lu.assertTrue(difference(net(want.ids7), plain) > 0.01)
  lu.assertEquals(#net:parameters(), #models.load(cases .. "llama"):parameters())
end

-- What is frozen stays, bit for bit; what is not learns.
function TestModels:test_adapters_train()
  local nn, optim = require "deepc.nn", require "deepc.optim"
  for name, targets in pairs { llama = { "q_proj", "v_proj", "lm_head" }, gpt2 = { "c_attn", "c_fc" },
    bert = { "query" } } do
    local net, case = load(name)
    models.lora(net, { rank = 2, alpha = 4, targets = targets, dropout = 0.1 }):train()
    local before, adapters = {}, {}
    for _, named in ipairs(net:named_cells()) do
      local kept = not named[1]:find "lora_"
      before[#before + 1] = kept and { named[2], named[2]:clone() } or nil
      adapters[#adapters + 1] = not kept and named[1] or nil
    end
    lu.assertEquals(#net:parameters(), #adapters)
    local opt = optim.Adam(net:parameters(), { lr = 2e-2 })
    local step = dc.fn("step(ids: i32[2, 13]) -> f32[]", function(ids)
      local y = net(ids)
      local loss = name == "bert" and (y - 1):square():mean()
        or nn.cross_entropy(y[{ {}, { 1, 12 } }], ids[{ {}, { 2, 13 } }])
      opt:step(loss)
      return loss
    end)
    local first = step(case.ids13):item()
    for _ = 1, 20 do step(case.ids13) end
    lu.assertTrue(step(case.ids13):item() < 0.95 * first, name)
    for _, pair in ipairs(before) do
      lu.assertTrue(pair[1]:eq(pair[2]):all():item())
    end
  end
end

function TestModels:test_mistakes_with_adapters()
  local net = models.llama(TINY)
  fails("models.Llama 16, 2 layers has no linear layer 'query'", models.lora, net, { targets = { "query" } })
  fails("targets are the names of linear layers, not a table", models.lora, net, { targets = {} })
  fails("models.Llama 16, 2 layers has no adapters", models.merge_lora, net)
  models.lora(net)
  fails("has adapters already, at 'model.layers.1.self_attn.q_proj'", models.lora, net)
  fails("a layer is needed, not nil", models.lora)
  local path, remove = folder()
  local text = check.read(cases .. "llama_lora/adapter_config.json")
  local function config(old, new)
    write(path .. "/adapter_config.json", (text:gsub(old, new)))
  end
  config('"use_dora": false', '"use_dora": true')
  fails("config.use_dora is true; false is known", models.load_lora, path, models.llama(TINY))
  config('"r": 2', '"r": 3')
  dc.save(path .. "/adapter_model.safetensors", dc.load(cases .. "llama_lora/adapter_model.safetensors"))
  fails("lora_A.weight' is [2, 24], model.layers.0.mlp.down_proj.lora_A.weight of the model [24, 3] turned",
    models.load_lora,
    path, models.llama(TINY))
  remove()
end

-- ---- files ----

local CONFIG = [[{"model_type": "llama", "vocab_size": 40, "hidden_size": 16, "intermediate_size": 24,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64%s}]]

function TestModels:test_folders_of_several_files()
  local _, case = load "llama"
  local path, remove = folder()
  local all, parts, map = dc.load(cases .. "llama/model.safetensors"), { {}, {} }, {}
  local names = {}
  for name in pairs(all) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local k = i % 2 + 1
    parts[k][name], map[i] = all[name], ('"%s": "model-%d.safetensors"'):format(name, k)
  end
  write(path .. "/config.json", CONFIG:format "")
  for k, part in ipairs(parts) do
    dc.save(("%s/model-%d.safetensors"):format(path, k), part)
  end
  local function index(text) write(path .. "/model.safetensors.index.json", text) end
  index('{"metadata": {"total_size": 1}, "weight_map": {' .. table.concat(map, ", ") .. "}}")
  near(models.load(path)(case.ids7), case.logits7, 1e-5, "parts")
  index('{"weight_map": {' .. table.concat(map, ", ") .. ', "other": "model-1.safetensors"}}')
  fails("file 'model-1.safetensors' has no tensor 'other'", models.load, path)
  index '{"weight_map": {"a": "../model.safetensors"}}'
  fails("'a' is in '../model.safetensors', which is no name of a file beside it", models.load, path)
  index '{"metadata": {}}'
  fails("it has no 'weight_map'", models.load, path)
  remove()
end

-- ---- files of GGUF ----

local GGUF_PARTS = {
  ["input_layernorm"] = "attn_norm", ["self_attn%.q_proj"] = "attn_q", ["self_attn%.k_proj"] = "attn_k",
  ["self_attn%.v_proj"] = "attn_v", ["self_attn%.o_proj"] = "attn_output", ["self_attn%.q_norm"] = "attn_q_norm",
  ["self_attn%.k_norm"] = "attn_k_norm", ["mlp%.gate_proj"] = "ffn_gate", ["mlp%.up_proj"] = "ffn_up",
  ["mlp%.down_proj"] = "ffn_down", ["pre_feedforward_layernorm"] = "ffn_norm",
    ["post_feedforward_layernorm"] = "post_ffw_norm",
}

-- Rows of a head with both halves one behind the other, as rows side by side.
local function interleaved(value, heads)
  local rows = #value // heads
  if #value.shape == 1 then
    return value:reshape(heads, 2, rows // 2):transpose(2, 3):reshape(#value)
  end
  return value:reshape(heads, 2, rows // 2, value.shape[2]):transpose(2, 3):reshape(#value, value.shape[2])
end

-- What a converter makes of a case, and its metadata.
local function as_gguf(case, o)
  local out = {}
  for name, value in pairs(dc.load(cases .. case .. "/model.safetensors")) do
    local heads = name:find "q_proj" and 4 or name:find "k_proj" and 2
    value = o.interleaved and heads and interleaved(value, heads) or value
    value = o.around_one and name:find "norm%.weight$" and value + 1 or value
    name = name:gsub("^model%.layers%.", "blk."):gsub("^model%.embed_tokens", "token_embd"):gsub("^model%.norm",
      "output_norm")
      :gsub("^lm_head", "output")
    for ours, theirs in pairs(GGUF_PARTS) do
      name = name:gsub(ours, theirs)
    end
    name = name:gsub("post_attention_layernorm", o.around_one and "post_attention_norm" or "ffn_norm")
    out[name] = value
  end
  local about = { ["general.architecture"] = o.name, ["tokenizer.ggml.eos_token_id"] = 2 }
  for key, value in pairs(o.about) do
    about[o.name .. "." .. key] = value
  end
  return out, about
end

local function common(more)
  local about = { block_count = 2, context_length = 64, embedding_length = 16, feed_forward_length = 24,
    ["attention.head_count"] = 4, ["attention.head_count_kv"] = 2, ["attention.layer_norm_rms_epsilon"] = 1e-6,
    ["rope.freq_base"] = 10000.0 }
  for key, value in pairs(more or {}) do
    about[key] = value
  end
  return about
end

local FILES = {
  llama = { name = "llama", interleaved = true, about = common() },
  llama3 = { name = "llama", interleaved = true, about = common { ["attention.key_length"] = 8,
    ["rope.dimension_count"] = 8 } },
  llama_linear = { name = "llama", interleaved = true, about = common { ["rope.scaling.type"] = "linear",
    ["rope.scaling.factor"] = 4.0 } },
  qwen3 = { name = "qwen3", about = common { ["attention.key_length"] = 8 } },
  gemma2 = { name = "gemma2", around_one = true, about = common { ["attention.key_length"] = 8,
    ["attention.sliding_window"] = 5, attn_logit_softcapping = 2.0, final_logit_softcapping = 3.0 } },
}

for case, o in pairs(FILES) do
  TestModels["test_gguf_" .. case] = function()
    local path = os.tmpname() .. ".gguf"
    local tensors, about = as_gguf(case, o)
    if case == "llama3" then -- biases are not in files of Llama; factors of waves are
      for name in pairs(tensors) do
        tensors[name] = not name:find "bias$" and tensors[name] or nil
      end
      tensors["rope_freqs.weight"] = dc.tensor { 1, 2, 4, 8 }
    elseif case == "gemma2" then -- the size of a head is what scores are scaled by there
      about["gemma2.attention.key_length"] = 8
    end
    dc.save(path, tensors, about)
    local net, want = models.load(path), dc.load(cases .. case .. "/case.safetensors")
    lu.assertEquals(net.config.stop, { 2 })
    if case == "llama3" then
      local rope = net.config.kinds[1].rope
      check.close(rope.frequencies, { 1, 0.1 / 2, 0.01 / 4, 0.001 / 8 }, 1e-9)
    elseif case == "gemma2" then
      lu.assertEquals({ net.config.scale, net.config.cap, net.config.final_cap }, { 8 ^ -0.5, 2.0, 3.0 })
      local same = models.load(cases .. case)
      for i, named in ipairs(same:named_parameters()) do
        local ours = net:named_parameters()[i]
        lu.assertEquals(ours[1], named[1])
        lu.assertTrue(ours[2]:allclose(named[2], { atol = 1e-6 }), named[1])
      end
    else
      for _, n in ipairs { 1, 7, 13 } do
        near(net(want["ids" .. n]), want["logits" .. n], 1e-5, case .. n)
      end
      compare_steps(net, net:cache(16, { batch = 2 }), want.ids13, want.logits13)
    end
    os.remove(path)
  end
end

-- Adapters that were trained with the rows of queries and keys as transformers has them.
function TestModels:test_adapters_of_gguf()
  local file, adapters, remove = os.tmpname() .. ".gguf", folder()
  dc.save(file, as_gguf("llama", FILES.llama))
  local want = dc.load(cases .. "llama_lora/case.safetensors")
  local net = models.load_lora(cases .. "llama_lora", models.load(file))
  near(net(want.ids7), want.logits7, 1e-5)
  models.save_lora(adapters, net)
  local other = models.load_lora(adapters, models.load(cases .. "llama"))
  near(other(want.ids7), want.logits7, 1e-5)
  remove()
  os.remove(file)
end

function TestModels:test_gguf_that_does_not_fit()
  local path = os.tmpname() .. ".gguf"
  local tensors, about = as_gguf("llama", FILES.llama)
  local function changed(key, value)
    local before = about[key]
    about[key] = value
    dc.save(path, tensors, about)
    about[key] = before
  end
  changed("general.architecture", "mamba")
  fails("general.architecture is 'mamba'; known are gemma, gemma2, gemma3, llama, qwen2, qwen3", models.load, path)
  changed("llama.attention.head_count_kv", { 2, 2 })
  fails("llama.attention.head_count_kv is a list, a number for each layer; one number for all is known", models.load,
    path)
  changed("llama.attention.head_count", "four")
  fails("llama.attention.head_count is 'four'", models.load, path)
  changed("llama.block_count", 3)
  fails("has no tensor 'model.layers.2.input_layernorm.weight'", models.load, path)
  tensors["blk.0.ffn_gate_inp.weight"] = dc.ones "f32[2, 16]"
  changed("llama.x", 1)
  fails("'blk.0.ffn_gate_inp.weight' has no place in models.Llama 16, 2 layers", models.load, path)
  os.remove(path)
end

function TestModels:test_folders_that_do_not_fit()
  local path, remove = folder()
  fails("config.json: No such file", models.load, path)
  write(path .. "/config.json", CONFIG:format "")
  fails("has neither model.safetensors nor model.safetensors.index.json", models.load, path)
  local all = dc.load(cases .. "llama/model.safetensors")
  local function saved(name, value)
    local before = all[name]
    all[name] = value
    dc.save(path .. "/model.safetensors", all)
    all[name] = before
  end
  saved("model.norm.weight", nil)
  fails("has no tensor 'model.norm.weight'", models.load, path)
  saved("model.norm.bias", dc.ones "f32[16]")
  fails("'model.norm.bias' has no place in models.Llama 16, 2 layers", models.load, path)
  saved("model.norm.weight", dc.ones "f32[8]")
  fails("tensor 'model.norm.weight' is [8], model.norm.weight of the model [16]", models.load, path)
  saved("model.norm.weight", dc.ones "i32[16]")
  fails("tensor 'model.norm.weight' is i32, the model has f32", models.load, path)
  saved "none"
  write(path .. "/config.json", (CONFIG:format "":gsub('"hidden_size": 16', '"hidden_size": 16000000')))
  fails("the config is of a larger model than the weights, which are 5200 numbers", models.load, path)
  write(path .. "/config.json", (CONFIG:format "":gsub('"num_hidden_layers": 2', '"num_hidden_layers": 16000000')))
  fails("config.num_hidden_layers is 16000000; 4096 layers at most are made", models.load, path)
  write(path .. "/config.json", CONFIG:format "")
  lu.assertEquals(models.load(path).config.hidden_size, 16)
  write(path .. "/config.json", CONFIG:format(', "rope_scaling": null, "eos_token_id": [2, 3]'))
  lu.assertEquals(models.load(path).config.stop, { 2, 3 })
  write(path .. "/config.json", '{"model_type": "t5"}')
  fails("model_type is 't5'; known are ", models.load, path)
  for text, why in pairs {
    ["{"] = "at byte 1: a string expected, not the end", ["[1]"] = "an object is needed",
    [""] = "at byte 0: a value expected", ['{"a": 01}'] = "at byte 6: a value expected, not '0'",
    ['{"a": "x'] = "at byte 8: '\"' expected, not the end", ['{"a": 1} 2'] = "at byte 9: the end expected",
    ['{"a": tru}'] = "at byte 6: a value expected", ['{"a" 1}'] = "at byte 5: ':' expected",
    ['{"a": "\\ud800"}'] = "in pairs where it is a surrogate", ['{"a": "\\q"}'] = "at byte 8: one of ",
    ['{"a": ' .. ("["):rep(100)] = "at most 64 deep", ['{"a": [1 2]}'] = "at byte 9: ',' or ']' expected",
  } do
    write(path .. "/config.json", text)
    fails(why, models.load, path)
  end
  remove()
end

-- A config that is cut or changed anywhere is refused, or is another config; nothing else happens.
function TestModels:test_damaged_configs()
  local path, remove = folder()
  local text = check.read(cases .. "gemma3/config.json")
  dc.save(path .. "/model.safetensors", { x = dc.zeros "f32[1]" })
  local seed = 7
  local function random(n)
    seed = (seed * 1103515245 + 12345) % (1 << 31)
    return (seed >> 8) % n + 1
  end
  local function try(damaged)
    write(path .. "/config.json", damaged)
    local ok, err = pcall(models.load, path)
    lu.assertFalse(ok)
    lu.assertEquals(tostring(err.code):match "^DC0%d+$", err.code, damaged)
  end
  for n = 0, #text - 2, 5 do
    try(text:sub(1, n))
  end
  for _ = 1, 100 do
    local at = random(#text)
    try(text:sub(1, at - 1) .. string.char(random(255)) .. text:sub(at + 1))
  end
  remove()
end
