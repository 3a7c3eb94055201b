-- Attention, transformers and positions beyond their values, which tests/peers/cases/nn.lua compares with PyTorch's:
-- sizes with a bound, 16-bit floats, dropout, loops, files of PyTorch, mistakes.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local check = require "tests.lua.check"

local fails, close = check.fails, check.close

TestAttention = {}

local function randn(text, seed)
  return dc.randn(text, { seed = seed })
end

-- One compilation for texts of any length, padded ones among them.
function TestAttention:test_sizes_with_a_bound()
  local layer = nn.TransformerEncoderLayer(8, 2, { feedforward = 8, batch_first = true, kv_heads = 1 }):eval()
  local f = dc.fn("f(x: f32[b <= 3, t <= 6, 8]) -> f32[b, t, 8]", function(x)
    local y = layer(nn.rotary(x), { causal = true })
    return y
  end)
  for _, sizes in ipairs { { 1, 6 }, { 3, 4 } } do
    local x = randn(("f32[%d, %d, 8]"):format(sizes[1], sizes[2]), 3)
    close(f(x):totable(), layer(nn.rotary(x), { causal = true }):totable(), 1e-5)
  end
  lu.assertEquals(#f:info(), 1)
  local attend = dc.fn("attend(q: f32[t <= 5, 4], k: f32[s <= 7, 4], pad: bool[s]) -> f32[t, 4]", function(q, k, pad)
    local y = nn.scaled_dot_product_attention(q, k, k, { mask = ~pad:reshape(1, -1) })
    return y
  end)
  local q, k, pad = randn("f32[2, 4]", 1), randn("f32[3, 4]", 2), dc.tensor({ false, true, false }, "bool")
  close(attend(q, k, pad):totable(), nn.scaled_dot_product_attention(q, k, k, { mask = ~pad }):totable(), 1e-6)
end

-- A mask that leaves nothing gives zeros, and no NaN in gradients.
function TestAttention:test_nothing_counts()
  local q = randn("f32[3, 4]", 1):watch()
  for _, mask in ipairs { dc.zeros "bool[3, 3]", dc.full("f32[3, 3]", -math.huge) } do
    local y = nn.scaled_dot_product_attention(q, q, q, { mask = mask })
    lu.assertTrue(y:eq(0):all():item())
    lu.assertTrue(dc.grad(y:sum(), q):eq(0):all():item())
  end
end

function TestAttention:test_16_bits()
  for _, dtype in ipairs { "f16", "bf16" } do
    local q, k = randn("f32[2, 4, 5, 8]", 1):cast(dtype), randn("f32[2, 2, 6, 8]", 2):cast(dtype)
    local y = nn.scaled_dot_product_attention(q, k, k, { enable_gqa = true })
    local wide = k:cast "f32"
    local want = nn.scaled_dot_product_attention(q:cast "f32", wide, wide, { enable_gqa = true })
    lu.assertTrue(y:eq(want:cast(dtype)):all():item())
    local net = nn.TransformerEncoder(8, 2, { layers = 1, feedforward = 8 }):cast(dtype)
    lu.assertEquals(net(randn("f32[3, 2, 8]", 3):cast(dtype)).dtype, dtype)
    lu.assertEquals(nn.rotary(q).dtype, dtype)
  end
end

function TestAttention:test_second_gradients()
  local k = randn("f64[4, 2]", 2)
  local function slope(q)
    return dc.grad((nn.scaled_dot_product_attention(q, k, k, { causal = true }) ^ 2):sum(), q)
  end
  local f = dc.fn("f(q: f64[3, 2]) -> f64[3, 2]", function(q) return dc.grad(slope(q):sum(), q) end)
  local q, step = randn("f64[3, 2]", 1), 1e-5
  local got, want = f(q), {}
  for i = 1, 3 do
    want[i] = {}
    for c = 1, 2 do
      local function at(d)
        return slope(q:put({ i, c }, q[{ i, c }] + d)):sum():item()
      end
      want[i][c] = (at(step) - at(-step)) / (2 * step)
    end
  end
  close(got:totable(), want, 1e-6)
end

-- Over one more axis by vmap, and in a loop of the graph.
function TestAttention:test_inside_vmap_and_loops()
  local x = randn("f32[3, 4, 8]", 1)
  local layer = nn.MultiheadAttention(8, 2)
  local y = dc.vmap(function(v) return (layer(v, nil, nil, { causal = true })) end)(x)
  for i = 1, 3 do
    close(y[i]:totable(), layer(x[i], nil, nil, { causal = true }):totable(), 1e-5)
  end
  local f = dc.fn("f(v: f32[4, 8]) -> f32[4, 8]", function(v)
    return dc.fori(2, function(_, h) return (layer(h)) end, v)
  end)
  close(f(x[1]):totable(), layer(layer(x[1])):totable(), 1e-5)
end

function TestAttention:test_dropout()
  local q = dc.ones "f32[1, 50, 4]"
  local y = nn.scaled_dot_product_attention(q, q, q, { dropout = 0.5 })
  lu.assertTrue(y:std():item() > 0.05)
  lu.assertAlmostEquals(y:mean():item(), 1, 0.2)
  local layer = nn.TransformerEncoderLayer(4, 2, { dropout = 0.5 })
  lu.assertFalse(layer(q):eq(layer(q)):all():item())
  layer:eval()
  lu.assertTrue(layer(q):eq(layer(q)):all():item())
end

-- Matrices are [outputs, inputs] there, lists are counted from 0.
function TestAttention:test_a_file_of_pytorch()
  local net = nn.TransformerEncoder(4, 2, { layers = 2, feedforward = 6 })
  local names = { "linear1.bias", "linear1.weight", "linear2.bias", "linear2.weight", "norm1.bias", "norm1.weight",
    "norm2.bias", "norm2.weight", "self_attn.in_proj_bias", "self_attn.in_proj_weight", "self_attn.out_proj.bias",
    "self_attn.out_proj.weight" }
  local theirs, path = {}, os.tmpname()
  for i = 0, 1 do
    for k, name in ipairs(names) do
      local mine = net.layers[i + 1]
      for part in name:gmatch "[^.]+" do mine = mine[part] end
      local value = dc.rand(mine, { seed = k + i })
      theirs[("layers.%d.%s"):format(i, name)] = #value.shape == 2 and value:transpose():clone() or value
    end
  end
  dc.save(path, theirs)
  dc.load(path, net, { first = 0 })
  lu.assertTrue(net.layers[2].self_attn.in_proj_weight:transpose():eq(theirs["layers.1.self_attn.in_proj_weight"]):all()
    :item())
  lu.assertTrue(net.layers[1].self_attn.out_proj.weight:transpose():eq(theirs["layers.0.self_attn.out_proj.weight"])
    :all():item())
  os.remove(path)
end

function TestAttention:test_texts()
  lu.assertEquals(tostring(nn.MultiheadAttention(8, 4, { kv_heads = 2 })):match "^[^\n]+%)",
    "nn.MultiheadAttention 8, 4 heads (2 of k and v)")
  lu.assertEquals(tostring(nn.RotaryEmbedding(8)), "nn.RotaryEmbedding 8")
end

-- Queries and keys that are turned have products that depend on how far apart they are.
function TestAttention:test_rotary_is_relative()
  local q, k = randn("f64[1, 8]", 1):expand(6, 8), randn("f64[1, 8]", 2):expand(6, 8)
  for _, interleaved in ipairs { false, true } do
    local a, b = nn.rotary(q, { interleaved = interleaved }), nn.rotary(k, { interleaved = interleaved, offset = 3 })
    local products = a:matmul(b:transpose()):totable()
    for i = 1, 5 do
      lu.assertAlmostEquals(products[i][2], products[i + 1][3], 1e-12)
    end
  end
end

function TestAttention:test_mistakes()
  local q = dc.zeros "f32[2, 3, 4]"
  local attend, layer = nn.scaled_dot_product_attention, nn.MultiheadAttention(4, 2)
  fails("features differ: q is f32[2, 3, 4], k f32[2, 3, 5]", attend, q, dc.zeros "f32[2, 3, 5]", q)
  fails("times differ: k is f32[2, 3, 4], v f32[2, 5, 4]", attend, q, q, dc.zeros "f32[2, 5, 4]")
  fails("mask is bool[3, 4], scores are [..., 3, 3]", attend, q, q, q, { mask = dc.zeros "bool[3, 4]" })
  fails("mask is i32[3, 3]; bools, true where a key counts, or f32, which is added, are needed", attend, q, q, q,
    { mask = dc.zeros "i32[3, 3]" })
  fails("heads of q are no multiple of those of k and v", attend, dc.zeros "f32[3, 2, 4]", q, q, { enable_gqa = true })
  fails("causal is true or false, not 1", attend, q, q, q, { causal = 1 })
  fails("dropout is a number from 0 to below 1, not 1", attend, q, q, q, { dropout = 1 })
  fails("a size of 6 does not divide into 4 heads", nn.MultiheadAttention, 6, 4)
  fails("4 heads are no multiple of 3 kv_heads", nn.MultiheadAttention, 8, 4, { kv_heads = 3 })
  fails("q is f32[2, 3, 5]; [time, batch, 4] is needed", layer, dc.zeros "f32[2, 3, 5]")
  local err = fails("there is no option 'attn_mask'", layer, q, nil, nil, { attn_mask = dc.zeros "bool[2, 2]" })
  lu.assertStrContains(err.hint, "mask = ~attn_mask")
  fails("key_padding_mask is bool[2, 3]; [3, 2] is needed", layer, q, nil, nil,
    { key_padding_mask = dc.zeros "bool[2, 3]" })
  fails('activation is "relu", "gelu", "silu", a function or a layer, not \'elu\'', nn.TransformerEncoderLayer, 4, 2,
    { activation = "elu" })
  fails("positions are i32[4], x is f32[2, 3, 4]; [time] or [batch, time] is needed", nn.rotary, q,
    { positions = dc.zeros "i32[4]" })
  fails("5 of 5 features are turned; an even number of them is needed", nn.rotary, dc.zeros "f32[2, 5]")
  fails("the size is 3; an even number is needed", nn.sinusoidal_positions, 4, 3)
end
