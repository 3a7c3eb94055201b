-- What a server of a language model writes for 1, 2, 4 ... texts at once, on one thread (DEEPC_THREADS=1): tokens per
-- second of processor time, medians of rounds in turns, beside models.generate; prompts that are read whole and found.
-- The model has the sizes of SmolLM2-135M and drawn weights.
--
--   DEEPC_THREADS=1 deepc bench/serving.lua [ROUNDS [SLOTS]]
local dc = require "deepc"
local models = require "deepc.models"
local serve = require "deepc.serve"

local ROUNDS, SLOTS = tonumber(arg[1]) or 3, math.tointeger(tonumber(arg[2])) or 8
local TOKENS, PROMPT = 24, 512

local net = models.llama({ vocab_size = 49152, hidden_size = 576, intermediate_size = 1536, num_hidden_layers = 30,
  num_attention_heads = 9, num_key_value_heads = 3, tie_word_embeddings = true }):eval()
local server = serve.new(net, nil, { slots = SLOTS, context = 1024, tokens = SLOTS * 1024 }):prepare()

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local drawn = 0

local function prompt(n)
  drawn = drawn + 1
  return dc.randint(("i32[%d]"):format(n), { high = 49152, seed = drawn }):totable()
end

-- Tokens per second of n texts, without their prompts.
local function written(n)
  local open, start = n, nil
  for _ = 1, n do
    local first = true
    server:submit { prompt = prompt(16), max_tokens = TOKENS, on_token = function()
      open, first = open - (first and 1 or 0), false
      start = start or open == 0 and os.clock() or nil
    end }
  end
  server:run()
  return n * (TOKENS - 1) / (os.clock() - start)
end

local cache = net:cache(1024)

local function generated()
  local start
  models.generate(net, prompt(16), { max = TOKENS, stop = {}, cache = cache:keep(0), on_token = function()
    start = start or os.clock()
  end })
  return (TOKENS - 1) / (os.clock() - start)
end

local function read(ids)
  local start = os.clock()
  server:submit { prompt = ids, max_tokens = 1 }
  server:run()
  return os.clock() - start
end

local sizes, rates = {}, { generate = {}, read = {}, found = {} }
for n = 1, SLOTS do
  sizes[#sizes + 1] = n & (n - 1) == 0 and n or nil
end
for round = 0, ROUNDS do -- the first one compiles
  local function note(key, value)
    rates[key] = rates[key] or {}
    table.insert(rates[key], round > 0 and value or nil)
  end
  note("generate", generated())
  for _, n in ipairs(sizes) do
    note(n, written(n))
  end
  local ids = prompt(PROMPT)
  note("read", read(ids))
  note("found", read(ids))
end
local one = median(rates.generate)
print(("models.generate  %7.1f tokens/s"):format(one))
for _, n in ipairs(sizes) do
  local rate = median(rates[n])
  print(("%d texts          %7.1f tokens/s  %5.2f"):format(n, rate, rate / one))
end
print(("a prompt of %d tokens: read in %.2f s, found in %.3f s"):format(PROMPT, median(rates.read),
  median(rates.found)))
