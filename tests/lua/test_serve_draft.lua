-- Texts that a small model guesses ahead: those of the large one alone, or as likely.
local lu = require "luaunit"
local dc = require "deepc"
local models = require "deepc.models"
local serve = require "deepc.serve"
local check = require "tests.lua.check"

local fails = check.fails

local CONFIG = { vocab_size = 40, hidden_size = 16, intermediate_size = 24, num_hidden_layers = 2,
  num_attention_heads = 4, num_key_value_heads = 2, initializer_range = 0.5, max_position_embeddings = 256 }
local SMALL = { vocab_size = 40, hidden_size = 8, intermediate_size = 8, num_hidden_layers = 1,
  num_attention_heads = 2, initializer_range = 0.4, max_position_embeddings = 256 }

dc.seed(3)
local net = models.llama(CONFIG):eval()
local small = models.llama(SMALL):eval()

local function numbers(n, seed)
  return dc.randint(("i32[%d]"):format(n), { high = 40, seed = seed }):totable()
end

local cache = net:cache(256)

local function alone(options)
  return models.generate(net, options.prompt, { cache = cache:keep(0), max = options.max_tokens, stop = {} })
end

TestDraft = {}

-- The same texts, whether guesses are good or bad, in slices, with a mask or a penalty beside, up to the last position.
function TestDraft:test_likeliest()
  for _, draft in ipairs { net, small } do
    local server = serve.new(net, nil, { slots = 4, page = 4, chunk = 8, tokens = 160, context = 48, draft = draft,
      draft_tokens = 3 })
    local list, requests = {}, {}
    for i, n in ipairs { 1, 2, 7, 21, 30, 5, 9 } do
      list[i] = { prompt = numbers(n, n), max_tokens = i == 5 and 18 or 6 + i }
      requests[i] = server:submit(list[i])
    end
    local masked = server:submit { prompt = { 1, 2 }, max_tokens = 5, mask = function(ids) return { #ids } end }
    local warm = server:submit { prompt = { 4, 5, 6 }, max_tokens = 9, temperature = 1, seed = 3 }
    while server:step(0) do end
    for i, r in ipairs(requests) do
      lu.assertEquals({ r.ids, r.reason }, { alone(list[i]), "length" }, "request " .. i)
    end
    lu.assertEquals(masked.ids, { 0, 1, 2, 3, 4 })
    lu.assertEquals(#warm.ids, 9)
    local stats = server:stats()
    lu.assertEquals(stats.pages_left, 40)
    lu.assertTrue(stats.guessed > 30 and stats.kept <= stats.guessed)
    if draft == net then
      lu.assertTrue(stats.kept > 0.7 * stats.guessed, stats.kept / stats.guessed)
    end
  end
end

-- Where pages run out, and where beginnings are shared.
function TestDraft:test_pages()
  local server = serve.new(net, nil, { slots = 4, page = 4, chunk = 8, tokens = 64, draft = small, draft_tokens = 2 })
  local list, requests, prompt = {}, {}, numbers(13, 5)
  for i = 1, 6 do
    list[i] = { prompt = i > 2 and prompt or numbers(4 + i, i), max_tokens = 20 + i }
    requests[i] = server:submit(list[i])
  end
  server:run()
  for i, r in ipairs(requests) do
    lu.assertEquals(r.ids, alone(list[i]), "request " .. i)
  end
  lu.assertTrue(requests[6].reused_tokens > 0)
  lu.assertTrue(server:stats().preempted > 0)
end

-- Tokens that are drawn are as frequent as those that the model alone draws: the third one behind a prompt, which is a
-- guess that was kept or what was drawn instead.
function TestDraft:test_distribution()
  local function frequencies(draft, options)
    local server = serve.new(net, nil, { slots = 16, page = 4, tokens = 512, draft = draft, draft_tokens = 2 })
    local counts = {}
    for i = 1, 500 do
      options.prompt, options.max_tokens, options.seed = { 3, 1, 4 }, 4, i
      options.on_done = function(r) counts[r.ids[3]] = (counts[r.ids[3]] or 0) + 1 end
      server:submit(options)
    end
    server:run()
    return counts, server:stats()
  end
  for _, options in ipairs { { temperature = 1.5 }, { temperature = 1.3, top_k = 6, top_p = 0.9 },
    { temperature = 1.2, min_p = 0.1 } } do
    local a = frequencies(nil, options)
    local b, stats = frequencies(small, options)
    local chi, n = 0, 0
    for id = 0, 39 do
      local x, y = a[id] or 0, b[id] or 0
      if x + y >= 10 then
        chi, n = chi + (x - y) ^ 2 / (x + y), n + 1
      end
    end
    lu.assertTrue(n > 3 and chi < n - 1 + 4 * (2 * n) ^ 0.5, ("chi square %g of %d"):format(chi, n))
    lu.assertTrue(stats.kept > 50 and stats.kept < 0.95 * stats.guessed)
  end
end

-- The tokens of a seed do not depend on others.
function TestDraft:test_seeds()
  local options = { prompt = numbers(9, 1), max_tokens = 15, temperature = 1, top_p = 0.9, seed = 7 }
  local function write(others)
    local server = serve.new(net, nil, { slots = 4, page = 4, tokens = 256, draft = small })
    for i = 1, others do
      server:submit { prompt = numbers(3 + i, i), max_tokens = 12, temperature = 0.8, seed = i }
    end
    local r = server:submit(options)
    server:run()
    return r.ids
  end
  local ids = write(0)
  lu.assertEquals(#ids, 15)
  lu.assertEquals(write(2), ids)
  lu.assertEquals(write(5), ids)
end

-- Nothing is traced or compiled once a server is prepared.
function TestDraft:test_prepare()
  local server = serve.new(net, nil, { slots = 2, page = 4, tokens = 128, draft = small, draft_tokens = 2 })
  server:prepare():prepare({ temperature = 1, top_p = 0.9 }):prepare { presence_penalty = 1 }
  local before = dc.stats()
  local list = { { prompt = numbers(9, 1), max_tokens = 6 }, { prompt = { 1 }, max_tokens = 9, presence_penalty = 0.1 },
    { prompt = { 3, 4 }, max_tokens = 7, temperature = 0.7, top_p = 0.8, seed = 1 } }
  local requests = {}
  for i, options in ipairs(list) do
    requests[i] = server:submit(options)
    server:run()
  end
  for i, options in ipairs(list) do
    requests[3 + i] = server:submit(options)
  end
  server:run()
  local after = dc.stats()
  lu.assertEquals({ after.traces, after.compiles }, { before.traces, before.compiles })
  for i = 1, 3 do
    lu.assertEquals(requests[i].ids, requests[3 + i].ids)
  end
  lu.assertEquals(requests[1].ids, alone(list[1]))
  server:submit(list[1])
  while server:step(0) do
    if not pcall(server.prepare, server) then
      break
    end
  end
  fails("prepare: a call of the model is under way", server.prepare, server)
  fails("prepare: unknown option 'seed'", server.prepare, server, { seed = 1 })
  server:run()
end

function TestDraft:test_mistakes()
  local other = models.llama { vocab_size = 41, hidden_size = 8, intermediate_size = 8, num_hidden_layers = 1,
    num_attention_heads = 2 }
  fails("serve.new: draft: it has 41 tokens, the model that it guesses for has 40", serve.new, net, nil,
    { draft = other })
  fails("serve.new: draft: a model that writes is needed, not the number 3", serve.new, net, nil, { draft = 3 })
  fails("draft_tokens is a positive integer, not 0", serve.new, net, nil, { draft = small, draft_tokens = 0 })
  local short = models.gpt2 { vocab_size = 40, n_embd = 8, n_layer = 1, n_head = 1, n_positions = 32 }
  fails("draft: it has 32 positions, and the context is 256", serve.new, net, nil, { draft = short })
end
