-- Texts of a server beside those of models.generate, one by one: the same tokens whatever else is written.
local lu = require "luaunit"
local dc = require "deepc"
local models = require "deepc.models"
local serve = require "deepc.serve"
local tokenizers = require "deepc.tokenizers"
local check = require "tests.lua.check"

local fails = check.fails

TestServe = {}

local CONFIG = { vocab_size = 40, hidden_size = 16, intermediate_size = 24, num_hidden_layers = 2,
  num_attention_heads = 4, num_key_value_heads = 2, initializer_range = 0.5, max_position_embeddings = 256 }

local net

local function tiny()
  if not net then
    dc.seed(3)
    net = models.llama(CONFIG):eval()
  end
  return net
end

-- n numbers below `high` of a seed.
local function numbers(n, seed, high)
  return dc.randint(("i32[%d]"):format(n), { high = high or 40, seed = seed }):totable()
end

local caches = {}

-- What models.generate writes by the same options.
local function alone(model, options)
  caches[model] = caches[model] or model:cache(math.min(model.config.positions, 256))
  return models.generate(model, options.prompt, { cache = caches[model]:keep(0), max = options.max_tokens,
    temperature = options.temperature,
    top_k = options.top_k, top_p = options.top_p, min_p = options.min_p, seed = options.seed,
    repetition_penalty = options.repetition_penalty, stop = {} })
end

local REQUESTS = {
  { prompt = { 3, 1, 4 }, max_tokens = 12 },
  { prompt = numbers(9, 1), max_tokens = 7, temperature = 0.9, seed = 5 },
  { prompt = numbers(21, 2), max_tokens = 10, temperature = 0.8, top_p = 0.9, seed = 6 },
  { prompt = { 7 }, max_tokens = 15, top_k = 5, seed = 7 },
  { prompt = numbers(30, 4), max_tokens = 3, min_p = 0.1, seed = 8, top_k = 20, top_p = 0.95, temperature = 1.3 },
  { prompt = numbers(5, 3), max_tokens = 9, repetition_penalty = 1.5 },
  { prompt = numbers(17, 9), max_tokens = 6, repetition_penalty = 0.7, temperature = 1.1, seed = 1 },
}

local function submit_all(server, list)
  local requests = {}
  for i, options in ipairs(list) do
    requests[i] = server:submit(options)
  end
  return requests
end

local function compare(model, requests, list)
  for i, r in ipairs(requests) do
    lu.assertTrue(r.done)
    lu.assertEquals(r.reason, "length")
    lu.assertEquals(r.ids, alone(model, list[i]), "request " .. i)
  end
end

function TestServe:test_same_as_alone()
  local model = tiny()
  local server = serve.new(model, nil, { slots = 4, page = 4, chunk = 8, tokens = 256 })
  local requests = submit_all(server, REQUESTS)
  lu.assertEquals(server:stats().waiting, #REQUESTS)
  server:run()
  compare(model, requests, REQUESTS)
end

-- Windows, bounded scores, norms of queries, learned positions: small models of transformers.
local cases = package.path:match "^(.-)/%.%./%?%.lua" .. "/peers/models/cases/"

for _, name in ipairs { "llama_yarn", "qwen2", "gemma2", "gemma3", "gpt2" } do
  TestServe["test_" .. name] = function()
    local model = models.load(cases .. name)
    model.config.stop = {}
    local server = serve.new(model, nil, { slots = 2, page = 4, chunk = 8, tokens = 64, context = 32 })
    local list = { REQUESTS[1], { prompt = numbers(21, 2), max_tokens = 10 }, { prompt = { 7 }, max_tokens = 15 } }
    local requests = submit_all(server, list)
    server:run()
    compare(model, requests, list)
  end
end

-- They come while others are written, whose steps do not stop; time is cut in slices.
-- A model with a token whose keys and values are no numbers.
local function with_a_bad_token()
  dc.seed(3)
  local model = models.llama(CONFIG):eval()
  local weight = model.model.embed_tokens.weight
  weight:set(weight:put(dc.tensor({ 39 }, "i32"), dc.full("f32[1, 16]", 0 / 0), 1))
  return model
end

-- What a text leaves in its pages is not seen by those that get them next.
function TestServe:test_pages_of_a_text_that_is_no_numbers()
  local good, bad = { prompt = { 3, 1, 4, 1, 5 }, max_tokens = 6 }, { prompt = { 2, 39, 7, 1, 1, 2, 39 } }
  for _, options in ipairs { { cache = "f32" }, { cache = "f16" }, { cache = "i8" }, { draft = true } } do
    local model = with_a_bad_token()
    local server = serve.new(model, nil, { slots = 1, page = 4, chunk = 8, tokens = 12, cache = options.cache,
      draft = options.draft and model })
    local clean = server:submit(good)
    server:run()
    local wrong = server:submit(bad)
    server:run()
    lu.assertEquals({ wrong.reason, #wrong.ids }, { "error", 0 })
    lu.assertStrContains(tostring(wrong.error), "serve: token 1 cannot be chosen: the model's logits are NaN")
    local again = server:submit { prompt = { 3, 1, 4, 1, 5 }, max_tokens = 6 }
    server:run()
    lu.assertEquals(again.ids, clean.ids, tostring(options.cache))
  end
end

-- Of several texts one ends, whatever it is drawn by.
function TestServe:test_logits_that_are_nan()
  local model = with_a_bad_token()
  for _, how in ipairs { {}, { temperature = 1 }, { temperature = 0.8, top_k = 4 }, { repetition_penalty = 1.2 } } do
    for _, draft in ipairs { false, model } do
      local server = serve.new(model, nil, { slots = 2, page = 4, tokens = 64, draft = draft or nil })
      how.prompt, how.max_tokens, how.seed = { 3, 1 }, 9, 4
      local good = server:submit(how)
      how.prompt = { 3, 39 }
      local bad = server:submit(how)
      server:run()
      lu.assertEquals({ good.reason, #good.ids, bad.reason, #bad.ids }, { "length", 9, "error", 0 })
    end
    how.max_tokens, how.max, how.prompt = nil, 5, nil
    fails("models.generate: token 1 cannot be chosen: the model's logits are NaN", models.generate, model,
      { { 3, 1 }, { 3, 39 } }, how)
  end
end

function TestServe:test_join_and_leave()
  local model = tiny()
  local server = serve.new(model, nil, { slots = 4, page = 4, chunk = 4, tokens = 256 }):prepare()
  local requests, seen, order = {}, {}, {}
  local long = { prompt = numbers(40, 7), max_tokens = 4, on_done = function() order[#order + 1] = "long" end }
  local list = { { prompt = { 5 }, max_tokens = 30, on_token = function(text, id)
    lu.assertEquals(text, "")
    seen[#seen + 1] = id
    if #seen == 3 then
      requests[2] = server:submit(long)
    end
  end, on_done = function(r)
    lu.assertTrue(r.done)
    order[#order + 1] = "first"
  end }, long }
  requests[1] = server:submit(list[1])
  local steps = 0
  while server:step(0) do
    steps = steps + 1
  end
  lu.assertEquals(seen, requests[1].ids)
  lu.assertEquals(order, { "long", "first" }) -- ten chunks of a prompt between tokens
  lu.assertTrue(steps > 40)
  for _, options in ipairs(list) do
    options.on_token = nil
  end
  compare(model, requests, list)
  lu.assertFalse(server:step())
  lu.assertEquals(server:stats(), { running = 0, waiting = 0, pages = 64, pages_left = 64, preempted = 0,
    guessed = 0, kept = 0 })
end

-- More texts than pages: those that came last are read again, and nothing changes of what is written.
function TestServe:test_preemption()
  local model, list = tiny(), {}
  for i = 1, 6 do
    list[i] = { prompt = numbers(3 + i, 20 + i), max_tokens = 24, temperature = i % 2, seed = i }
  end
  for _, reuse in ipairs { true, false } do
    local server = serve.new(model, nil, { slots = 4, page = 4, chunk = 8, tokens = 64, reuse = reuse })
    local requests = submit_all(server, list)
    server:run()
    compare(model, requests, list)
    local stats = server:stats()
    lu.assertTrue(stats.preempted > 0)
    lu.assertEquals(stats.pages_left, 16)
  end
end

-- Whole pages of what was read are used again, while they are in use and afterwards, until pages are needed.
function TestServe:test_prefixes()
  local model = tiny()
  local server = serve.new(model, nil, { slots = 3, page = 4, chunk = 32, tokens = 128 })
  local prompt = numbers(18, 30)
  local function ask(tail, max)
    local ids = table.move(prompt, 1, #prompt, 1, {})
    return { prompt = table.move(tail, 1, #tail, #ids + 1, ids), max_tokens = max or 6 }
  end
  local list = { ask({ 1 }), ask({ 2, 3 }), ask({}), ask({ 1, 5, 6, 7, 8, 9 }) }
  local requests = { server:submit(list[1]) }
  server:step()
  for i = 2, 4 do
    requests[i] = server:submit(list[i])
  end
  server:run()
  compare(model, requests, list)
  local reused = {}
  for i, r in ipairs(requests) do
    reused[i] = r.reused_tokens
  end
  lu.assertEquals(reused, { 0, 16, 16, 16 })
  -- what others read meanwhile
  local same = { ask({ 11 }), ask({ 12 }), ask({ 13, 2 }) }
  for _, options in ipairs(same) do
    options.prompt[1] = 39
  end
  local together = submit_all(server, same)
  server:run()
  compare(model, together, same)
  lu.assertEquals({ together[1].reused_tokens, together[2].reused_tokens, together[3].reused_tokens }, { 0, 16, 16 })
  -- the whole chat so far, and a prompt of pages alone, of which one token is read again
  local chat = table.move(requests[1].ids, 1, 6, 20, table.move(list[1].prompt, 1, 19, 1, {}))
  local more = { { prompt = chat, max_tokens = 5 }, { prompt = table.move(prompt, 1, 16, 1, {}), max_tokens = 5 } }
  local again = submit_all(server, more)
  server:run()
  compare(model, again, more)
  lu.assertEquals({ again[1].reused_tokens, again[2].reused_tokens }, { 24, 12 })
  -- other texts take all pages; then nothing is known any more
  local others = {}
  for i = 1, 5 do
    others[i] = { prompt = numbers(90, 40 + i), max_tokens = 2 }
  end
  submit_all(server, others)
  server:run()
  local last = server:submit(list[1])
  server:run()
  compare(model, { last }, { list[1] })
  lu.assertEquals(last.reused_tokens, 0)
end

local tok

local function words()
  local folder = (arg[0]:match "^(.*)/tests/[^/]*$" or ".") .. "/tests/lua/tokenizers/"
  tok = tok or tokenizers.load(folder .. "gpt2.json")
  return tok
end

local function talker()
  dc.seed(4)
  return models.llama { vocab_size = #words() + 3, hidden_size = 16, intermediate_size = 24, num_hidden_layers = 1,
    num_attention_heads = 2, initializer_range = 0.5 }
end

-- Pieces are whole characters, and what may become a stop waits.
function TestServe:test_texts()
  local model, t = talker(), words()
  local server = serve.new(model, t, { slots = 2, tokens = 1024 })
  for seed = 1, 4 do
    local options = { prompt = "Once upon", max_tokens = 60, temperature = 2, seed = seed }
    local pieces, ids = {}, {}
    options.on_token = function(text, id)
      lu.assertTrue(utf8.len(text) ~= nil)
      pieces[#pieces + 1], ids[#ids + 1] = text, id
    end
    local whole = server:submit(options)
    server:run()
    local kept = {}
    for _, id in ipairs(whole.ids) do
      kept[#kept + 1] = id < #t and id or nil
    end
    local text = whole:text()
    lu.assertEquals(text, t:decode(kept))
    lu.assertEquals(table.concat(pieces), text)
    lu.assertEquals(ids, whole.ids)
    lu.assertEquals(whole.prompt_tokens, #t:encode "Once upon")

    local from = utf8.offset(text, utf8.len(text) // 2)
    local stop = text:sub(from, utf8.offset(text, 4, from) - 1)
    options.stop, pieces = { "no such text", stop, stop .. "?" }, {}
    local stopped = server:submit(options)
    server:run()
    local at = text:find(stop, 1, true)
    lu.assertEquals({ stopped:text(), table.concat(pieces), stopped.reason },
      { text:sub(1, at - 1), text:sub(1, at - 1), "stop" })
    options.stop, pieces = text:sub(1, 1) .. "\1", {} -- whose beginning occurs
    local held = server:submit(options)
    server:run()
    lu.assertEquals({ held:text(), table.concat(pieces), held.reason }, { text, text, "length" })
    options.stop = whole.ids[5]
    local token = server:submit(options)
    server:run()
    lu.assertEquals(token.reason, "stop")
    lu.assertTrue(#token.ids < 5 and token:text() == text:sub(1, #token:text()))
  end
end

-- What a callback does wrong ends its request and no other.
function TestServe:test_ends()
  local model = tiny()
  local server = serve.new(model, nil, { slots = 4, page = 4, tokens = 256 })
  local list = {}
  for i = 1, 5 do
    list[i] = { prompt = numbers(6, 50 + i), max_tokens = 10 }
  end
  local count = 0
  list[1].on_token = function(_, id)
    count = count + 1
    if count == 4 then
      error "broken"
    end
    lu.assertEquals(math.type(id), "integer")
  end
  list[2].on_token = function() return false end
  list[3].on_done = function() error { what = "mine" } end
  list[5].on_token = function() server:step() end
  local requests = submit_all(server, list)
  server:run()
  list[1].on_token, list[2].on_token, list[3].on_done, list[5].on_token = nil, nil, nil, nil
  lu.assertEquals({ requests[1].reason, #requests[1].ids }, { "error", 4 })
  lu.assertStrContains(tostring(requests[1].error), "broken")
  lu.assertEquals({ requests[2].reason, #requests[2].ids }, { "cancelled", 1 })
  lu.assertEquals({ requests[3].reason, requests[3].error.what }, { "error", "mine" })
  lu.assertEquals(requests[3].ids, alone(model, list[3]))
  compare(model, { requests[4] }, { list[4] })
  lu.assertStrContains(tostring(requests[5].error), "step: the server is called by one of its own callbacks")

  local first, second = server:submit(list[1]), server:submit(list[2])
  server:step()
  first:cancel()
  first:cancel()
  lu.assertEquals({ first.done, first.reason }, { true, "cancelled" })
  server:run()
  compare(model, { second }, { list[2] })
  local waiting = server:submit(list[1])
  waiting:cancel()
  lu.assertFalse(server:step())
  lu.assertEquals(server:stats().pages_left, 64)
end

-- An interrupt leaves a callback through the server, which goes on where it was.
function TestServe:test_interrupts()
  local model = tiny()
  for _, draft in ipairs { false, model } do
    local server = serve.new(model, nil, { slots = 4, page = 4, tokens = 256, draft = draft or nil, draft_tokens = 2 })
    local list, count, stopped = {}, 0, 0
    local function interrupted()
      count = count + 1
      if count % 5 == 0 then
        error({ code = "DC0708" }, 0)
      end
    end
    for i = 1, 4 do
      list[i] = { prompt = numbers(6, 60 + i), max_tokens = 9, on_token = interrupted }
    end
    local requests = submit_all(server, list)
    repeat
      local ok, err = pcall(server.run, server)
      lu.assertTrue(ok or err.code == "DC0708")
      stopped = stopped + (ok and 0 or 1)
    until ok
    lu.assertEquals(stopped, 7)
    compare(model, requests, list)
    lu.assertEquals(server:stats().pages_left, 64)
  end
end

-- Requests of random beginnings come, are cancelled, wait and are driven out: no page is lost, no text is another's.
function TestServe:test_random()
  local model, seed = tiny(), math.tointeger(tonumber(os.getenv "DEEPC_SEED")) or 1
  local random = numbers(1000, seed, 1 << 20)
  local at = 0
  local function draw(n)
    at = at % #random + 1
    return random[at] % n
  end
  local draft = seed % 2 == 0 and model or nil
  local server = serve.new(model, nil, { slots = 4, page = 4, chunk = 8, tokens = 72, draft = draft, draft_tokens = 2 })
  local list, requests = {}, {}
  for i = 1, 40 do
    local ids = { draw(3) }
    for k = 2, 1 + draw(24) do
      ids[k] = (ids[1] * 7 + k) % 40
    end
    ids[#ids + 1] = draw(40)
    list[i] = { prompt = ids, max_tokens = 1 + draw(20) }
    requests[i] = server:submit(list[i])
    for _ = 1, draw(12) do
      server:step(draw(3) == 0 and 0 or nil)
    end
    if draw(5) == 0 then
      requests[1 + draw(i)]:cancel()
    end
  end
  server:run()
  for i, r in ipairs(requests) do
    local want = alone(model, list[i])
    lu.assertEquals(r.ids, table.move(want, 1, #r.ids, 1, {}), ("request %d, DEEPC_SEED=%d"):format(i, seed))
    lu.assertTrue(r.reason == "cancelled" or #r.ids == #want)
  end
  lu.assertEquals(server:stats().pages_left, 18)
end

-- Tokens of config.stop and of the tokenizer end texts.
function TestServe:test_stop_tokens()
  local config = {}
  for key, value in pairs(CONFIG) do
    config[key] = value
  end
  local model = tiny()
  local want = alone(model, { prompt = { 3, 1 }, max_tokens = 10 })
  config.eos_token_id = want[4]
  local other = models.llama(config):eval()
  for i, named in ipairs(model:named_parameters()) do
    other:named_parameters()[i][2]:set(named[2])
  end
  local r = serve.new(other, nil, { tokens = 64 })
  local request = r:submit { prompt = { 3, 1 }, max_tokens = 10 }
  r:run()
  lu.assertEquals(request.reason, "stop")
  lu.assertTrue(#request.ids <= 3)
end

-- Penalties of what was written, by hand: the likeliest token after each change.
function TestServe:test_penalties()
  local model = tiny()
  local server = serve.new(model, nil, { slots = 2, page = 4, tokens = 128 })
  local prompt = { 3, 1, 4, 1 }
  local asked = { prompt = prompt, max_tokens = 12, frequency_penalty = 0.7, presence_penalty = 0.4,
    repetition_penalty = 1.2 }
  local beside = server:submit(REQUESTS[3])
  local r = server:submit(asked)
  server:run()
  lu.assertEquals(beside.ids, alone(model, REQUESTS[3]))
  local ids, counts, seen = { 3, 1, 4, 1 }, {}, { [3] = true, [1] = true, [4] = true }
  for i = 1, 12 do
    local logits, best, most = model(dc.tensor({ ids }, "i32"))[1][-1]:totable(), nil, -math.huge
    for k, logit in ipairs(logits) do
      local id = k - 1
      if seen[id] then
        logit = logit > 0 and logit / 1.2 or logit * 1.2
      end
      logit = logit - 0.7 * (counts[id] or 0) - (counts[id] and 0.4 or 0)
      if logit > most then
        best, most = id, logit
      end
    end
    lu.assertEquals(r.ids[i], best, "token " .. i)
    ids[#ids + 1], seen[best], counts[best] = best, true, (counts[best] or 0) + 1
  end
end

function TestServe:test_mistakes()
  local model = tiny()
  local server = serve.new(model, nil, { slots = 2, page = 4, tokens = 64, queue = 2 })
  local function wrong(text, options)
    fails(text, server.submit, server, options)
  end
  wrong("submit: options are a table, not nil", nil)
  wrong("submit: there is no option 'max'", { prompt = { 1 }, max = 3 })
  wrong("submit: prompt is a text or a list of ids, not nil", {})
  wrong("submit: the prompt is a text, and the server has no tokenizer", { prompt = "a" })
  wrong("submit: token 2 of the prompt is 40; ids are whole numbers from 0 to 39", { prompt = { 1, 40 } })
  wrong("submit: token 1 of the prompt is 1.5", { prompt = { 1.5 } })
  wrong("submit: the prompt has no tokens", { prompt = {} })
  wrong("submit: the prompt has 3 tokens, and up to 62 are written; the server takes 64 of both",
    { prompt = { 1, 2, 3 }, max_tokens = 62 })
  wrong("submit: the prompt has 64 tokens, and up to 1 are written", { prompt = numbers(64, 1) })
  wrong("submit: max_tokens is a positive integer, not 0", { prompt = { 1 }, max_tokens = 0 })
  wrong("temperature is a number from 0 to 10000.0, not -1", { prompt = { 1 }, temperature = -1 })
  wrong("presence_penalty is a number from -100 to 100, not 'x'", { prompt = { 1 }, presence_penalty = "x" })
  wrong("seed is a whole number, not 1.5", { prompt = { 1 }, seed = 1.5 })
  wrong("stop is a text, and the server has no tokenizer", { prompt = { 1 }, stop = "a" })
  wrong("stop has ''; texts in UTF-8 and tokens are known", { prompt = { 1 }, stop = "" })
  wrong("stop has true;", { prompt = { 1 }, stop = { true } })
  wrong("on_token is a function, not the number 1", { prompt = { 1 }, on_token = 1 })
  local r = server:submit { prompt = { 1 } }
  fails("text: the server has no tokenizer", r.text, r)
  fails("text: a request is needed, not the number 3", r.text, 3)
  server:submit { prompt = { 1 } }
  wrong("submit: 2 requests wait, which is the most", { prompt = { 1 } })
  fails("step: a number of milliseconds is needed, not -1", server.step, server, -1)
  fails("step: a server is needed, not the number 3", server.step, 3)
end

function TestServe:test_wrong_servers()
  local model = tiny()
  local function wrong(text, ...)
    fails(text, serve.new, ...)
  end
  wrong("serve.new: the first argument: a model that writes is needed, not nil")
  wrong("serve.new: the first argument: models.Mamba 8, 1 layers keeps something else than keys and values of tokens",
    models.mamba { vocab_size = 10, hidden_size = 8, num_hidden_layers = 1, state_size = 4 })
  wrong("a tokenizer is needed, not the number 3", model, 3)
  wrong("slots is a positive integer, not 0", model, nil, { slots = 0 })
  wrong("serve.new: context is 300; the model has 256 positions, and there is room for 4096 tokens", model, nil,
    { context = 300 })
  wrong("reuse is true or false, not 1", model, nil, { reuse = 1 })
  wrong("room", model, nil, { room = 3 })
end
