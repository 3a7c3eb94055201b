-- Keys and values that are kept as integers, or as other floats than those of the model.
local lu = require "luaunit"
local dc = require "deepc"
local models = require "deepc.models"
local serve = require "deepc.serve"
local check = require "tests.lua.check"

local fails = check.fails

TestKept = {}

local TINY = { vocab_size = 40, hidden_size = 32, intermediate_size = 24, num_hidden_layers = 2,
  num_attention_heads = 8, num_key_value_heads = 2, initializer_range = 0.3, max_position_embeddings = 512 }
local BLOCK = 32

local function config(options)
  local c = {}
  for _, source in ipairs { TINY, options } do
    for key, value in pairs(source) do
      c[key] = value
    end
  end
  return c
end

local function make(kind, options)
  dc.seed(5)
  return models[kind](config(options or {})):eval()
end

local FAMILIES = {
  grouped = function() return make "llama" end,
  window = function() return make("mistral", { sliding_window = 5 }) end,
  -- bounded scores, a window in every second layer, one head for all queries
  gemma2 = function()
    return make("gemma2", { num_key_value_heads = 1, head_dim = 8, sliding_window = 7, attn_logit_softcapping = 2 })
  end,
  gemma3 = function() return make("gemma3", { head_dim = 8, sliding_window = 6, num_hidden_layers = 6 }) end,
  qwen3 = function() return make("qwen3", { head_dim = 16 }) end,
  gpt2 = function()
    return make("gpt2", { n_embd = 32, n_layer = 2, n_head = 4, n_positions = 512 })
  end,
}

local function numbers(n, seed)
  return dc.randint(("i32[%d]"):format(n), { high = 40, seed = seed }):totable()
end

-- Keys and values of a layer as floats, [2, batch, heads, room, features], and what one of each row is, [2, batch,
-- heads, room].
local function kept(cache, layer)
  local at = cache.layers[layer]
  local b, heads, room, d = table.unpack(at.values.shape)
  local keys = at.keys:reshape(b, room // BLOCK, heads, d, BLOCK):permute(1, 3, 2, 5, 4):reshape(b, heads, room, d)
  local both = dc.stack({ keys:cast "f32", at.values:cast "f32" }, 1)
  return at.scales and both * at.scales:reshape(2, b, heads, room, 1) or both, at.scales
end

local function rms(x)
  return (x * x):mean():item() ^ 0.5
end

-- In one layer keys and values are those of a cache of floats, rounded: by half of what one is at most, which is the
-- largest number of a row / 127.
function TestKept:test_rows_are_rounded()
  for name, net in pairs { llama = make("llama", { num_hidden_layers = 1 }), gpt2 = make("gpt2", { n_embd = 32,
    n_layer = 1, n_head = 4, n_positions = 512 }) } do
    local floats, integers = net:cache(100, { batch = 2 }), net:cache(100, { batch = 2, dtype = "i8" })
    local ids = dc.randint("i32[2, 70]", { high = 40, seed = 1 })
    for _, cache in ipairs { floats, integers } do
      net:step(ids[{ {}, { 1, 67 } }], cache)
      for i = 68, 70 do
        net:step(ids[{ {}, { i, i } }], cache)
      end
    end
    local got, one = kept(integers, 1)
    local want = kept(floats, 1)[{ {}, {}, {}, { 1, 70 } }]
    got, one = got[{ {}, {}, {}, { 1, 70 } }], one[{ {}, {}, {}, { 1, 70 } }]
    lu.assertTrue((one - want:abs():max(-1) / 127):abs():max():item() <= 1e-6, name)
    local off = (got - want):abs():max(-1) / one
    lu.assertTrue(off:max():item() <= 0.5 + 1e-4, name)
    lu.assertTrue(off:max():item() > 0.4, name) -- some numbers lie between two
    lu.assertEquals({ integers:length(), integers.layers[1].values.dtype }, { 70, "i8" })
  end
end

-- What GPT-2 of one layer gives for its last token, of keys and values that are given: softmax(q k^T) v, by hand.
local function by_hand(net, token, place, rows)
  local parts = net.transformer
  local block = parts.h[1]
  local x = parts.wte(token) + parts.wpe(place)
  local heads, d = net.config.heads, net.config.head_dim
  local q = block.attn.c_attn(block.ln_1(x))[{ {}, { 1, heads * d } }]:reshape(-1, heads, 1, d)
  local weights = (q:matmul(rows[1]:transpose()) * net.config.scale):softmax(-1)
  x = x + block.attn.c_proj(weights:matmul(rows[2]):reshape(-1, heads * d))
  x = x + block.mlp.c_proj(block.act(block.mlp.c_fc(block.ln_2(x))))
  return parts.ln_f(x):matmul(parts.wte.weight:transpose())
end

-- Attention to what is kept is that to the numbers that it stands for, whether one token comes or several.
local function compare_by_hand(dtype)
  local net = make("gpt2", { n_embd = 32, n_layer = 1, n_head = 4, n_positions = 512 })
  local cache = net:cache(200, { batch = 2, dtype = dtype })
  local ids = dc.randint("i32[2, 200]", { high = 40, seed = 2 })
  local from = 1
  for _, n in ipairs { 1, 1, 31, 1, 60, 2, 1, 33, 1 } do
    local last = from + n - 1
    local got = net:step(ids[{ {}, { from, last } }], cache)
    local rows = kept(cache, 1)[{ {}, {}, {}, { 1, last } }]
    local want = by_hand(net, ids[{ {}, last }], dc.full("i32[2]", last - 1), rows)
    lu.assertTrue((got - want):abs():max():item() <= 2e-5 * want:abs():max():item(), "token " .. last)
    from = last + 1
  end
end

function TestKept:test_attention_is_exact()
  for _, dtype in ipairs { "i8", "f32", "f16", "bf16" } do
    compare_by_hand(dtype)
  end
end

-- Single tokens and many at once are different code, and give the same; both are near what floats give. One of a row
-- is a 127th of its largest number: that much for the keys and for the values of each layer.
for name, family in pairs(FAMILIES) do
  TestKept["test_family_" .. name] = function()
    local net = family()
    local ids = numbers(75, 3)
    local want = net(dc.tensor({ ids }, "i32"), { last = true })
    local single, several = net:cache(80, { dtype = "i8" }), net:cache(80, { dtype = "i8" })
    local one
    for _, id in ipairs(ids) do
      one = net:step({ id }, single)
    end
    net:step({ table.unpack(ids, 1, 40) }, several)
    local many = net:step({ table.unpack(ids, 41) }, several)
    local bound = 2 * net.config.layers / 127
    lu.assertTrue(rms(one - want) <= bound * rms(want), ("one by one: %g"):format(rms(one - want) / rms(want)))
    lu.assertTrue(rms(many - want) <= bound * rms(want), ("several: %g"):format(rms(many - want) / rms(want)))
    lu.assertTrue(rms(one - many) <= 1e-3 * rms(want), ("both: %g"):format(rms(one - many) / rms(want)))
  end
end

function TestKept:test_other_floats()
  local net = make "llama"
  local want = net:step(numbers(40, 4), net:cache(64))
  for dtype, digits in pairs { f32 = 24, f16 = 11, bf16 = 8 } do
    local cache = net:cache(64, { dtype = dtype })
    net:step(numbers(40, 4), cache)
    lu.assertEquals(cache.layers[1].keys.dtype, dtype)
    local y = net:step({ 7 }, cache)
    lu.assertEquals({ y.dtype, cache:length() }, { "f32", 41 })
    local got = net:step(numbers(40, 4), cache:keep(0))
    lu.assertTrue(rms(got - want) <= 16 * 2.0 ^ -digits * rms(want),
      ("%s: %g"):format(dtype, rms(got - want) / rms(want)))
  end
end

-- Beside what a model of 16 bits loses by itself integers lose what they lose of the same model in f32, or twice that,
-- as other numbers are rounded.
function TestKept:test_short_floats()
  for _, dtype in ipairs { "f16", "bf16" } do
    dc.seed(5)
    local net, exact = models.llama(TINY, { dtype = dtype }):eval(), models.llama(TINY):eval()
    local cells = net:parameters()
    for i, cell in ipairs(exact:parameters()) do
      cell:set(cells[i]:cast "f32")
    end
    local ids = numbers(40, 4)
    local want = exact:step(ids, exact:cache(64))
    local function off(model, as)
      local cache = model:cache(64, { dtype = as })
      model:step({ table.unpack(ids, 1, 39) }, cache)
      local y = model:step({ ids[40] }, cache)
      lu.assertEquals(y.dtype, model.dtype)
      return rms(y:cast "f32" - want) / rms(want)
    end
    local got, own, lost = off(net, "i8"), off(net), off(exact, "i8")
    lu.assertTrue(got <= own + 2 * lost, ("%s: %g, %g and %g"):format(dtype, got, own, lost))
  end
end

-- Rows of zeros, and rows with what is no number.
function TestKept:test_zeros_and_infinities()
  local net = make("llama", { num_hidden_layers = 1 })
  net.model.layers[1].self_attn.v_proj.weight:set(dc.zeros "f32[32, 8]")
  net.model.layers[1].self_attn.k_proj.weight:set(dc.zeros "f32[32, 8]")
  local floats, integers = net:cache(64), net:cache(64, { dtype = "i8" })
  for _, ids in ipairs { { 1, 2, 3 }, { 4 } } do
    local want, got = net:step(ids, floats), net:step(ids, integers)
    lu.assertTrue((got - want):abs():max():item() <= 1e-5)
  end
  net.model.layers[1].self_attn.v_proj.weight:set(dc.full("f32[32, 8]", math.huge))
  for _, ids in ipairs { numbers(40, 7), { 4 } } do
    for _, cache in ipairs { floats, integers } do
      local got = net:step(ids, cache)
      lu.assertTrue(got:ne(got):all():item())
    end
  end
  net.model.layers[1].self_attn.v_proj.weight:set(dc.ones "f32[32, 8]")
  local new = net:cache(64)
  floats:keep(0)
  integers:keep(0) -- of what was no number nothing stays
  for _, ids in ipairs { { 1 }, { 2, 3 }, { 4 }, numbers(26, 7), { 5 }, { 6 }, { 7 }, { 8 } } do
    local want = net:step(ids, new)
    lu.assertTrue((net:step(ids, floats) - want):abs():max():item() <= 1e-5 * want:abs():max():item())
    lu.assertTrue((net:step(ids, integers) - want):abs():max():item() <= 1e-2 * want:abs():max():item())
  end
end

function TestKept:test_forgets_and_goes_on()
  local net = make "llama"
  local cache = net:cache(70, { dtype = "i8" })
  net:step(numbers(33, 6), cache)
  local want = net:step({ 6 }, cache)
  net:step({ 7, 8, 9 }, cache)
  lu.assertTrue((net:step({ 6 }, cache:keep(33)) - want):abs():max():item() <= 1e-5)
  lu.assertEquals(cache:keep(0):length(), 0)
  net:step(numbers(33, 6), cache)
  lu.assertTrue((net:step({ 6 }, cache) - want):abs():max():item() <= 1e-5)
  net:step(numbers(36, 6), cache) -- all that there is room for
  fails("the cache has room for 70 tokens: 70 are there, 1 more are given", net.step, net, { 1 }, cache)
  fails("71 tokens of 70", cache.keep, cache, 71)
  lu.assertStrContains(tostring(cache), "models.Cache 70 tokens, batch 1, i8")
  local other = make("llama", { hidden_size = 64 }):cache(8, { dtype = "i8" })
  fails("the cache is of another model", net, dc.zeros "i32[1, 1]", { cache = other })
end

-- A typed function of one's own, with more tokens at once than a step has; a loop of tokens.
function TestKept:test_in_typed_functions()
  local net = make "llama"
  local cache = net:cache(300, { dtype = "i8" })
  local f = dc.fn("f(ids: i32[1, 1 <= n <= 256]) -> f32[1, 40]", function(ids)
    local y = net(ids, { cache = cache, last = true })
    return y
  end)
  local ids = dc.tensor({ numbers(220, 8) }, "i32")
  local got, other = f(ids), net:cache(300, { dtype = "i8" })
  local want = net:step(ids, other)
  lu.assertTrue(rms(got - want) <= 1e-3 * rms(want))
  lu.assertTrue(rms(f(ids[{ {}, { 1, 1 } }]) - net:step(ids[{ {}, { 1, 1 } }], other)) <= 1e-3 * rms(want))
  lu.assertEquals({ #f:info(), cache:length() }, { 1, 221 })
  -- Outside of them, too.
  cache:keep(0)
  got = net(ids[{ {}, { 1, 40 } }], { cache = cache, last = true })
  lu.assertTrue(rms(got - net:step(ids[{ {}, { 1, 40 } }], other:keep(0))) <= 1e-3 * rms(want))
  got = net(ids[{ {}, { 41, 41 } }], { cache = cache, last = true })
  lu.assertTrue(rms(got - net:step(ids[{ {}, { 41, 41 } }], other)) <= 1e-3 * rms(want))
end

function TestKept:test_generate()
  local net = make "llama"
  local text = models.generate(net, { 3, 1, 4 }, { max = 40, stop = {}, cache = "i8" })
  local cache = net:cache(64, { dtype = "i8" })
  lu.assertEquals(models.generate(net, { 3, 1, 4 }, { max = 40, stop = {}, cache = cache }), text)
  -- Several, of which some have padding in front.
  local prompts = { { 3, 1, 4 }, numbers(9, 2), { 7 } }
  for i, list in ipairs(models.generate(net, prompts, { max = 20, stop = {}, cache = "i8" })) do
    lu.assertEquals(list, models.generate(net, prompts[i], { max = 20, stop = {}, cache = "i8" }), i)
  end
  local whisper = models.whisper { vocab_size = 40, d_model = 16, encoder_layers = 1, decoder_layers = 1,
    encoder_attention_heads = 2, decoder_attention_heads = 2, encoder_ffn_dim = 24, decoder_ffn_dim = 24,
    max_source_positions = 20 }:eval()
  local heard = whisper:listen(dc.randn("f32[1, 80, 40]", { seed = 1 }), whisper:cache(40, { dtype = "i8" }))
  lu.assertEquals(#models.generate(whisper, { 1, 2 }, { cache = heard, max = 6, stop = {} }), 6)
end

local function texts(net, server)
  local prompts, requests = { numbers(37, 1), numbers(37, 1), numbers(5, 2), numbers(60, 3), { 9 } }, {}
  for i = 33, 37 do
    prompts[2][i] = 1
  end
  for i, prompt in ipairs(prompts) do
    requests[i] = server:submit { prompt = prompt, max_tokens = 10 }
  end
  server:run()
  for i, r in ipairs(requests) do
    lu.assertEquals(r.ids, models.generate(net, prompts[i], { max = 10, stop = {}, cache = "i8" }), "text " .. i)
  end
  return requests
end

-- A server writes what models.generate writes, with pages of any size, found ones and those of texts that had to wait.
function TestKept:test_server()
  for _, name in ipairs { "grouped", "gemma2" } do
    local net = FAMILIES[name]()
    local requests = texts(net, serve.new(net, nil, { slots = 3, tokens = 400, cache = "i8" }))
    lu.assertEquals(requests[2].reused_tokens, 32)
    local small = serve.new(net, nil, { slots = 4, tokens = 80, page = 8, chunk = 16, cache = "i8" })
    texts(net, small)
    lu.assertTrue(small:stats().preempted > 0)
  end
end

function TestKept:test_server_with_a_draft()
  local net, draft = FAMILIES.grouped(), make("llama", { num_hidden_layers = 1 })
  local server = serve.new(net, nil, { slots = 3, tokens = 400, cache = "i8", draft = draft, draft_tokens = 3 })
  texts(net, server)
  lu.assertTrue(server:stats().guessed > 0)
  lu.assertEquals(server.calls.pool.layers[1].values.dtype, "i8")
  lu.assertEquals(server.draft.calls.pool.layers[1].values.dtype, "i8")
  local floats = serve.new(net, nil, { slots = 2, cache = "bf16" })
  lu.assertEquals(floats.calls.pool.layers[1].keys.dtype, "bf16")
  lu.assertEquals(#floats:submit { prompt = { 1, 2, 3 }, max_tokens = 4 }.ids, 0)
  floats:run()
end

-- Layers that see the same have one mask, of which the kinds of Gemma have two.
function TestKept:test_masks_are_shared()
  if not (os.getenv "DEEPC_DEVICE" or "cpu"):find "^cpu" then
    lu.skip "about kernels of CPUs"
  end
  local net = make("gemma2", { num_key_value_heads = 1, head_dim = 8, sliding_window = 64, num_hidden_layers = 6 })
  for _, dtype in ipairs { "f32", "i8" } do
    local cache, masks = net:cache(1024, { dtype = dtype }), 0
    local read = dc.fn("read(ids: i32[1, 1 <= n <= 128]) -> f32[1, 40]", function(ids)
      local y = net(ids, { cache = cache, last = true })
      return y
    end)
    read(dc.zeros "i32[1, 100]")
    for line in read:plan():gmatch "[^\n]+" do
      masks = masks + (line:find "E_1_1_128_1_1" and 1 or 0)
    end
    lu.assertEquals(masks, 2, dtype)
  end
end

-- On CPUs integers are read where they are: no step stores them as floats, and one token takes the time of those before
-- it, not of the room.
function TestKept:test_no_floats_are_stored()
  if not (os.getenv "DEEPC_DEVICE" or "cpu"):find "^cpu" then
    lu.skip "about kernels of CPUs"
  end
  local net, room = make "llama", 32768
  local cache = net:cache(room, { dtype = "i8" })
  local step = dc.fn("step(ids: i32[1, 1]) -> f32[1, 40]", function(ids)
    local y = net(ids, { cache = cache, last = true })
    return y
  end)
  local token = dc.zeros "i32[1, 1]"
  local function quickest()
    local best = math.huge
    for _ = 1, 5 do
      local start = os.clock()
      step(token):totable()
      best = math.min(best, os.clock() - start)
    end
    return best
  end
  step(token)
  local few = quickest()
  cache.count:set(dc.zeros(("i8[%d]"):format(room - 8)))
  local many = quickest()
  lu.assertTrue(2 * few < many or os.getenv "DEEPC_CHECK" ~= nil, ("%g s, %g s"):format(few, many))
  lu.assertNotStrContains(step:explain():gsub("stored%s+", "stored "), "stored cast f32[1, 2, ")
  lu.assertEquals(step:info()[1].donated, 3 * net.config.layers + 1)
end

-- A quarter of what f32 takes: a byte for each number, and four for each row of a head.
function TestKept:test_memory()
  local net = make("llama", { hidden_size = 128, num_attention_heads = 2, num_key_value_heads = 1 })
  local function bytes(cache)
    local n = 0
    for _, at in ipairs(cache.layers) do
      for _, cell in pairs(at) do
        local count = cell.dtype == "i8" and 1 or 4
        for _, size in ipairs(cell.shape) do
          count = count * size
        end
        n = n + count
      end
    end
    return n
  end
  local share = bytes(net:cache(8192, { dtype = "i8" })) / bytes(net:cache(8192))
  lu.assertTrue(share <= 68 / 256, share)
end

function TestKept:test_mistakes()
  local net = make "llama"
  local known = '"i8", "f16", "bf16" or "f32", not '
  fails("cache: dtype is " .. known .. "'i4'", net.cache, net, 8, { dtype = "i4" })
  fails("cache: dtype is " .. known .. "8", net.cache, net, 8, { dtype = 8 })
  fails("cache: dtype is " .. known .. "'f64'", net.cache, net, 8, { dtype = "f64" })
  fails("models.generate: cache is " .. known .. "'q8'", models.generate, net, { 1 }, { cache = "q8" })
  fails('models.generate: cache is one of net:cache, or "i8", "f16", "bf16" or "f32", not the number 8',
    models.generate, net, { 1 }, { cache = 8 })
  fails("serve.new: cache is " .. known .. "'u8'", serve.new, net, nil, { cache = "u8" })
  local mamba = models.mamba { vocab_size = 40, hidden_size = 16, num_hidden_layers = 1, state_size = 4 }
  fails("models.generate: cache is 'i8': models.Mamba 16, 1 layers keeps something else than keys and values of tokens",
    models.generate, mamba, { 1 }, { cache = "i8" })
  fails("'dtype'", mamba.cache, mamba, 8, { dtype = "i8" })
  fails("cache: 268435712 tokens with 2 heads of 4 features are more than 2147483647 elements of a layer", net.cache,
    net, 1 << 28)
  fails("serve.new: 268435472 tokens with 2 heads of 4 features are more than 2147483647 elements", serve.new, net, nil,
    { tokens = 1 << 28, cache = "i8" })
end
