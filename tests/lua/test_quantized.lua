-- Quantised layers: their weights beside what files of GGUF mean, products beside the same sums in f64, gradients,
-- whole networks, mistakes. dc.dp4a by itself.
-- luacheck: ignore 431
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"

TestQuantized = {}

local function random(type, seed)
  return dc.randn(type, { seed = seed })
end

local function near(got, want, tolerance, what)
  local d, most = (got:cast "f64" - want:cast "f64"):abs():max():item(), want:abs():max():item()
  lu.assertTrue(d <= tolerance * math.max(most, 1e-30), ("%s: off by %g of %g"):format(what, d, most))
end

-- x as blocks of so many bits mean it, in f64.
local function rounded(x, block, bits)
  local n, k = x.shape[1], x.shape[2]
  local parts = x:reshape(n, k // block, block)
  local scale = parts:abs():max { axis = 3, keep = true } / (bits == 8 and 127 or 127 * 256)
  return ((parts * dc.where(scale:gt(0), 1 / scale, 0)):round():cast "f64" * scale:cast "f64"):reshape(n, k)
end

-- ---- dp4a ----

local function bytes_product(a, b, c)
  local sum = c
  for shift = 0, 24, 8 do
    local signed = (b >> shift & 255) ~ 128
    sum = sum + (a >> shift & 255) * (signed - 128)
  end
  return sum & 0xffffffff
end

function TestQuantized:test_dp4a()
  local as, bs, cs, want = {}, {}, {}, {}
  local state = 1
  local function draw()
    state = (state * 1103515245 + 12345) & 0x7fffffffffffffff
    return state >> 20 & 0xffffffff
  end
  local special = { 0, 0xffffffff, 0x80808080, 0x7f7f7f7f, 1 }
  for i = 1, 203 do
    as[i], bs[i], cs[i] = draw(), draw(), draw()
    if i <= 25 then
      as[i], bs[i] = special[(i - 1) // 5 + 1], special[(i - 1) % 5 + 1]
    end
    want[i] = bytes_product(as[i], bs[i], cs[i])
  end
  local a, b, c = dc.tensor(as, "u32"), dc.tensor(bs, "u32"), dc.tensor(cs, "u32")
  lu.assertEquals(dc.dp4a(a, b, c):totable(), want)
  lu.assertEquals(a:dp4a(b, c):totable(), want)
  local f = dc.fn("f(a: u32[n], b: u32[n], c: u32[n]) -> u32[n]", function(a, b, c) return a:dp4a(b, c) end)
  for _, n in ipairs { 1, 3, 4, 7, 8, 16, 21, 203 } do
    local got = f(a[{ { 1, n } }], b[{ { 1, n } }], c[{ { 1, n } }])
    lu.assertEquals(got:totable(), table.move(want, 1, n, 1, {}))
  end
  lu.assertEquals(dc.tensor({ { 2 }, { 3 } }, "u32"):dp4a(dc.tensor({ 1, 255 }, "u32"), 10):totable(),
    { { 12, 8 }, { 13, 7 } })
  lu.assertEquals(dc.dp4a(0x0302, dc.tensor({ 1, 0x0101 }, "u32"), 0):totable(), { 2, 5 })
  lu.assertErrorMsgContains("dp4a", dc.dp4a, dc.ones "i32[2]", dc.ones "i32[2]", dc.ones "i32[2]")
end

-- ---- weights ----

function TestQuantized:test_weights_are_those_of_files()
  local layer = nn.Linear(96, 37)
  local path = os.tmpname() .. ".gguf"
  for _, type in ipairs { "q8_0", "q4_0" } do
    dc.save(path, { w = layer.weight:transpose() }, {}, { type = type })
    local want = dc.load(path).w:transpose()
    local q = nn.QuantizedLinear(layer, type)
    lu.assertEquals(q:dequantize():totable(), want:totable())
    lu.assertEquals(tostring(q), "nn.QuantizedLinear 96 -> 37, " .. type)
    lu.assertEquals(q.bias, layer.bias)
  end
  os.remove(path)
end

-- ---- products ----

local function check_product(type, bits, m, k, n, seed)
  local layer = nn.Linear(k, n)
  layer.weight:set(random(("f32[%d, %d]"):format(k, n), seed))
  local q = nn.QuantizedLinear(layer, type, { activations = bits })
  local x = random(("f32[%d, %d]"):format(m, k), seed + 1)
  x = dc.where(dc.iota(k):lt(32), 0, x) -- a block of zeros
  local want = rounded(x, 32, bits):matmul(q:dequantize():cast "f64") + layer.bias:cast "f64"
  local what = ("%s, %d bits, %d x %d x %d"):format(type, bits, m, k, n)
  local f = dc.fn(("f(x: f32[m, %d]) -> f32[m, %d]"):format(k, n), function(x) return q(x) end)
  near(f(x), want, 2e-6, what)
  near(q(x), want, 2e-6, what .. ", outside")
end

function TestQuantized:test_products()
  local seed = 1
  for _, type in ipairs { "q8_0", "q4_0" } do
    for _, m in ipairs { 1, 2, 5, 16, 33 } do
      for _, kn in ipairs { { 32, 16 }, { 64, 20 }, { 96, 1 }, { 192, 80 } } do
        check_product(type, seed % 4 == 1 and 8 or 16, m, kn[1], kn[2], seed)
        seed = seed + 2
      end
    end
  end
end

function TestQuantized:test_products_of_other_shapes_and_dtypes()
  local layer = nn.Linear(64, 10)
  local q = nn.QuantizedLinear(layer, "q8_0")
  local x = random("f32[2, 3, 64]", 5)
  local flat = q(x:reshape(6, 64))
  lu.assertEquals(q(x):totable(), flat:reshape(2, 3, 10):totable())
  lu.assertEquals(q(x[{ 1, 1 }]):totable(), flat[1]:totable())
  for _, dtype in ipairs { "f16", "bf16", "f64" } do
    local y = q(x:cast(dtype))
    lu.assertEquals(y.dtype, dtype)
    near(y, layer(x), 0.02, dtype)
  end
  local bounded = dc.fn("f(x: f32[2, 1 <= n <= 9, 64]) -> f32[2, n, 10]", function(x) return q(x) end)
  for _, n in ipairs { 1, 3, 9 } do
    local v = random(("f32[2, %d, 64]"):format(n), 20 + n)
    near(bounded(v), q(v), 1e-6, "bounded")
  end
  local mapped = dc.vmap(function(v) return q(v) end)
  local f = dc.fn("f(x: f32[2, 3, 64]) -> f32[2, 3, 10]", function(x) return mapped(x) end)
  near(f(x), q(x), 1e-6, "vmap")
end

-- Types that are read and not made: rows of random bytes, whose scales are finite.
function TestQuantized:test_products_of_all_types_of_files()
  local about = { q4_0 = { 18, 32 }, q4_1 = { 20, 32 }, q5_0 = { 22, 32 }, q5_1 = { 24, 32 }, q8_0 = { 34, 32 },
    q4_k = { 144, 256 }, q5_k = { 176, 256 }, q6_k = { 210, 256 } }
  local number = { q4_0 = 2, q4_1 = 3, q5_0 = 6, q5_1 = 7, q8_0 = 8, q4_k = 12, q5_k = 13, q6_k = 14 }
  local path = os.tmpname() .. ".gguf"
  for _, type in ipairs { "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k" } do
    local bytes, elements = table.unpack(about[type])
    local blocks, state, rows = 20 * 512 // elements, 7, {}
    for i = 0, blocks * bytes - 1 do
      state = (state * 1103515245 + 12345) & 0x7fffffff
      local at, high = i % bytes, state >> 16 & 255
      local scale = type == "q6_k" and at == 209 or type ~= "q6_k" and (at == 1 or at == 3 and #type == 4)
      rows[#rows + 1] = string.char(scale and high & 0x83 | 0x20 or high)
    end
    local f <close> = io.open(path, "wb")
    local head = "GGUF" .. ("<I4I8I8"):pack(3, 1, 0) .. ("<s8I4I8I8I4I8"):pack("w", 2, 512, 20, number[type], 0)
    f:write(head, ("\0"):rep(-#head % 32), table.concat(rows))
    f:close()
    local w = dc.load(path).w
    local packed = dc.load(path, nil, { packed = true }).w
    local q = nn.QuantizedLinear(packed, type)
    lu.assertEquals(tostring(q), "nn.QuantizedLinear 512 -> 20, " .. type)
    near(q:dequantize(), w:transpose(), 1e-6, type)
    for _, m in ipairs { 1, 9 } do
      local x = random(("f32[%d, 512]"):format(m), m)
      near(q(x), rounded(x, type == "q6_k" and 16 or 32, 16):matmul(w:cast "f64":transpose()), 1e-5, type)
    end
  end
  os.remove(path)
end

-- Outside typed functions a batch of any size: few functions serve them all.
function TestQuantized:test_batches_of_many_sizes()
  for _, format in ipairs { "q8_0", "f8_e4m3" } do
    local layer = nn.QuantizedLinear(nn.Linear(64, 10), format)
    local weights, before = layer:dequantize(), dc.stats().traces
    for n = 1, 12 do
      local x = random(("f32[%d, 64]"):format(n), n)
      near(layer(x), x:matmul(weights) + layer.bias, 1e-4, format .. " " .. n)
    end
    lu.assertTrue(dc.stats().traces - before <= 6, dc.stats().traces - before)
    lu.assertEquals(layer(dc.zeros "f32[0, 64]").shape, { 0, 10 })
    lu.assertEquals(layer(random("f32[2, 3, 64]", 1)).shape, { 2, 3, 10 })
  end
end

function TestQuantized:test_rows()
  local table_of = nn.Embedding(37, 64)
  local q = nn.QuantizedEmbedding(table_of, "q8_0")
  local all = q:dequantize()
  near(all, table_of.weight, 0.005, "rows")
  local ids = dc.tensor({ { 0, 36 }, { 17, 16 } }, "i32")
  lu.assertEquals(q(ids):totable(), all:take(ids, 1):totable())
  lu.assertErrorMsgContains("37", function() return q(dc.tensor({ 37 }, "i32")):sum():item() end)
  local x = random("f32[3, 64]", 3)
  near(q:project(x), rounded(x, 32, 16):matmul(all:cast "f64":transpose()), 2e-6, "project")
end

function TestQuantized:test_gradients_are_those_of_the_weights()
  local layer = nn.Linear(64, 20)
  local q = nn.QuantizedLinear(layer, "q4_0")
  local w = q:dequantize()
  local x, g = random("f32[5, 64]", 7), random("f32[5, 20]", 8)
  local f = dc.fn("f(x: f32[5, 64], g: f32[5, 20]) -> f32[5, 64]", function(x, g)
    return dc.grad((q(x) * g):sum(), x)
  end)
  near(f(x, g), g:matmul(w:transpose()), 1e-5, "dx")
  local scale = dc.param(dc.ones "f32[64]")
  lu.assertErrorMsgContains("carries no graph", function()
    return dc.grad(q(x * scale):sum(), scale)
  end)
end

-- ---- networks ----

function TestQuantized:test_numbers_that_are_not_usual()
  local layer = nn.Linear(64, 8, { bias = false })
  local q = nn.QuantizedLinear(layer, "q8_0")
  local x = random("f32[1, 64]", 3)
  for _, scale in ipairs { 1e-44, 1e-36, 1e-30, 1e30 } do
    local y = q(x * scale)
    local want = (x * scale):cast "f64":matmul(layer.weight:cast "f64")
    near(y, scale < 1e-33 and want * 0 or want, 0.02, ("x times %g"):format(scale))
  end
  for _, v in ipairs { 0 / 0, 1 / 0 } do
    local y = q(dc.where(dc.iota(64):eq(40), v, x))
    lu.assertFalse(y:isfinite():any():item())
  end
end

function TestQuantized:test_scales_keep_their_dtype()
  local net = nn.Sequential { nn.Linear(64, 64), nn.LayerNorm(64) }
  local x = random("f32[2, 64]", 4)
  local want = net(x)
  nn.quantize(net, "q8_0")
  net:cast "bf16"
  lu.assertEquals(net[1].scales.dtype, "f16")
  local y = net(x:cast "bf16")
  lu.assertEquals(y.dtype, "bf16")
  near(y, want, 0.05, "bf16")
end

function TestQuantized:test_networks()
  local shared = nn.Linear(64, 64)
  local net = nn.Sequential { shared, nn.ReLU(), shared, nn.Sequential { nn.Linear(64, 32), nn.ReLU() },
    nn.Linear(32, 3) }
  local x = random("f32[4, 64]", 9)
  local want = net(x)
  lu.assertIs(nn.quantize(net, "q8_0", { skip = "^5$" }), net)
  near(net(x), want, 0.03, "net")
  lu.assertIs(net[1], net[3])
  lu.assertEquals(tostring(net[4][1]), "nn.QuantizedLinear 64 -> 32, q8_0")
  lu.assertEquals(tostring(net[5]), "nn.Linear 32 -> 3")
  local path = os.tmpname() .. ".safetensors"
  dc.save(path, net)
  local other = nn.Sequential { nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64),
    nn.Sequential { nn.Linear(64, 32), nn.ReLU() }, nn.Linear(32, 3) }
  other[3] = other[1]
  nn.quantize(other, "q8_0", { skip = "^5$" })
  dc.load(path, other)
  lu.assertEquals(other(x):totable(), net(x):totable())
  os.remove(path)
end

local function fails(text, f, ...)
  lu.assertErrorMsgContains(text, f, ...)
end

function TestQuantized:test_mistakes()
  local layer = nn.Linear(64, 10)
  fails('weights become "q4_0", "q8_0", "f8_e4m3" or "f8_e5m2", not \'q9\'', nn.QuantizedLinear, layer, "q9")
  fails('weights become "q4_0", "q8_0", "f8_e4m3" or "f8_e5m2", not \'q4_k\'', nn.QuantizedLinear, layer, "q4_k")
  fails("48 inputs are no multiple of 32, which a block of q8_0 has", nn.QuantizedLinear, nn.Linear(48, 3), "q8_0")
  fails("an nn.Linear is needed, or u8[rows, bytes], not an nn.ReLU", nn.QuantizedLinear, nn.ReLU(), "q8_0")
  fails("an nn.Embedding is needed, or u8[rows, bytes], not an nn.Linear", nn.QuantizedEmbedding, layer, "q8_0")
  fails("rows of 33 bytes are no blocks of q8_0, of 34 bytes each", nn.QuantizedLinear, dc.zeros "u8[2, 33]", "q8_0")
  fails("rows are f32[2, 34]; u8[rows, bytes] is needed", nn.QuantizedLinear, dc.zeros "f32[2, 34]", "q8_0")
  fails("rows are of a packed type, not 'q9'", nn.QuantizedEmbedding, dc.zeros "u8[2, 34]", "q9")
  local q = nn.QuantizedLinear(layer, "q8_0")
  fails("the last axis of x has to have 64 elements", q, dc.ones "f32[2, 32]")
  fails("x is i32; floats are needed", q, dc.ones "i32[2, 64]")
  layer.weight:set(layer.weight * (0 / 0))
  fails("a weight is not finite", nn.QuantizedLinear, layer, "q8_0")
  local net = nn.Sequential { nn.Linear(64, 48), nn.Linear(48, 64) }
  fails("'2' (nn.Linear 48 -> 64): 48 inputs are no multiple of 32", nn.quantize, net, "q8_0")
  lu.assertEquals(tostring(net[1]), "nn.Linear 64 -> 48") -- nothing has changed
  fails("nn.Sequential has no linear layer to quantise", nn.quantize, nn.Sequential { nn.ReLU() }, "q8_0")
  fails("activations are 8 or 16 bits, not 4", nn.quantize, net, "q8_0", { activations = 4 })
  fails("unknown option 'bits'", nn.QuantizedLinear, layer, "q8_0", { bits = 4 })
  fails("skip is a pattern of paths, not 3", nn.quantize, net, "q8_0", { skip = 3 })
  fails("a layer is needed", nn.quantize, 3, "q8_0")
end

-- ---- models ----

local GGUF = { input_layernorm = "attn_norm", ["self_attn.q_proj"] = "attn_q", ["self_attn.k_proj"] = "attn_k",
  ["self_attn.v_proj"] = "attn_v", ["self_attn.o_proj"] = "attn_output", post_attention_layernorm = "ffn_norm",
  ["mlp.gate_proj"] = "ffn_gate", ["mlp.up_proj"] = "ffn_up", ["mlp.down_proj"] = "ffn_down" }

local function save_gguf(path, net)
  local tensors = {}
  for _, named in ipairs(net:named_parameters()) do
    local name, value = named[1], named[2]
    local i, part = name:match "^model%.layers%.(%d+)%.(.*)%.weight$"
    name = i and ("blk.%d.%s.weight"):format(i - 1, GGUF[part])
      or name:gsub("model.embed_tokens", "token_embd"):gsub("model.norm", "output_norm")
    tensors[name] = #value.shape == 2 and not name:find "token_embd" and value:transpose() or value:stop_gradient()
  end
  dc.save(path, tensors, { ["general.architecture"] = "qwen3", ["qwen3.block_count"] = 2,
    ["qwen3.context_length"] = 64, ["qwen3.embedding_length"] = 64, ["qwen3.feed_forward_length"] = 96,
    ["qwen3.attention.head_count"] = 4, ["qwen3.attention.head_count_kv"] = 2, ["qwen3.attention.key_length"] = 16,
    ["qwen3.attention.layer_norm_rms_epsilon"] = 1e-6, ["qwen3.rope.freq_base"] = 10000.0 },
    { type = function(_, value) return #value.shape == 2 and "q8_0" or "f32" end })
end

function TestQuantized:test_models_multiply_what_files_have()
  local models = require "deepc.models"
  GGUF["self_attn.q_norm"], GGUF["self_attn.k_norm"] = "attn_q_norm", "attn_k_norm"
  local net = models.qwen3 { vocab_size = 50, hidden_size = 64, intermediate_size = 96, num_hidden_layers = 2,
    num_attention_heads = 4, num_key_value_heads = 2, head_dim = 16, max_position_embeddings = 64,
    tie_word_embeddings = true }
  net:eval()
  local path = os.tmpname() .. ".gguf"
  save_gguf(path, net)
  local floats, packed = models.load(path), models.load(path, { packed = true })
  lu.assertEquals(tostring(packed.model.layers[1].mlp.up_proj), "nn.QuantizedLinear 64 -> 96, q8_0")
  lu.assertEquals(tostring(packed.model.embed_tokens), "nn.QuantizedEmbedding 50 -> 64, q8_0")
  local rows = dc.load(path, nil, { packed = true })
  for name, layer in pairs { ["blk.1.ffn_up"] = packed.model.layers[2].mlp.up_proj,
    token_embd = packed.model.embed_tokens } do
    local same = nn[name == "token_embd" and "QuantizedEmbedding" or "QuantizedLinear"](rows[name .. ".weight"], "q8_0")
    for _, part in ipairs { "words", "scales" } do
      lu.assertTrue(layer[part]:eq(same[part]):all():item(), name .. " " .. part)
    end
  end
  local ids = dc.randint("i32[1, 9]", { high = 50, seed = 4 })
  local function logits(model)
    return dc.fn("f(ids: i32[1, n]) -> f32[1, n, 50]", function(ids) return model(ids) end)(ids)
  end
  near(logits(floats), logits(net), 0.02, "floats")
  near(logits(packed), logits(floats), 2e-4, "packed")
  near(logits(models.load(path, { packed = true, activations = 8 })), logits(floats), 0.02, "8 bits")
  local cache = packed:cache(16)
  local last = packed:step({ 3, 1, 4 }, cache)
  near(last, floats:step({ 3, 1, 4 }, floats:cache(16)), 0.02, "a step")
  os.remove(path)
  lu.assertEquals(#models.generate(packed, { 3, 1, 4 }, { max = 5, stop = {} }), 5)
end

-- Weights are read while the script goes on: from a file that is gone by then; of one that is emptied each use says so.
function TestQuantized:test_files_change_while_models_are_read()
  local models = require "deepc.models"
  GGUF["self_attn.q_norm"], GGUF["self_attn.k_norm"] = "attn_q_norm", "attn_k_norm"
  local net = models.qwen3 { vocab_size = 50, hidden_size = 64, intermediate_size = 96, num_hidden_layers = 2,
    num_attention_heads = 4, num_key_value_heads = 2, head_dim = 16, max_position_embeddings = 64,
    tie_word_embeddings = true }
  local path = os.tmpname() .. ".gguf"
  save_gguf(path, net)
  local function first(model)
    return model:step({ 3, 1, 4 }, model:cache(16)):totable()
  end
  local good, gone = first(models.load(path)), models.load(path)
  os.remove(path)
  lu.assertEquals(first(gone), good)
  for _ = 1, 20 do
    save_gguf(path, net)
    local model = models.load(path)
    assert(io.open(path, "w")):close()
    local ok, got = pcall(first, model)
    if ok then
      lu.assertEquals(got, good)
    else
      for _ = 1, 2 do
        lu.assertStrContains(tostring(got), path)
        lu.assertNotNil(tostring(got):find "since the file was opened" or tostring(got):find "while it was read")
        ok, got = pcall(first, model)
        lu.assertFalse(ok)
      end
    end
    os.remove(path)
  end
end

function TestQuantized:test_adapters_beside_quantised_layers()
  local models = require "deepc.models"
  local net = models.llama { vocab_size = 50, hidden_size = 64, intermediate_size = 96, num_hidden_layers = 2,
    num_attention_heads = 4 }
  nn.quantize(net, "q4_0")
  models.lora(net, { rank = 4, targets = { "q_proj", "down_proj" } })
  lu.assertEquals(#net:parameters(), 8)
  local opt = require("deepc.optim").Adam(net:parameters(), { lr = 0.05 })
  local step = dc.fn("step(ids: i32[2, 9]) -> f32[]", function(ids)
    local logits = net(ids[{ {}, { 1, 8 } }])
    local loss = nn.cross_entropy(logits:reshape(16, 50), ids[{ {}, { 2, 9 } }]:reshape(16))
    opt:step(loss)
    return loss
  end)
  local ids = dc.randint("i32[2, 9]", { high = 50, seed = 5 })
  local first, last = step(ids):item(), nil
  for _ = 1, 30 do
    last = step(ids):item()
  end
  lu.assertTrue(last < first - 0.5, ("%g, then %g"):format(first, last))
  fails("'model.layers.1.mlp.down_proj' are quantised: nothing is added to them", models.merge_lora, net)
end
