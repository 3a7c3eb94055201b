-- Layers made of layers, bags of embeddings, weights that are computed, dropout of channels.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local check = require "tests.lua.check"

local fails, close = check.fails, check.close

TestContainers = {}

function TestContainers:test_residual_and_parallel()
  local x = dc.randn("f32[2, 4]", { seed = 1 })
  local inner, other = nn.Linear(4, 4), nn.Linear(4, 3)
  close(nn.Residual(inner)(x):totable(), (x + inner(x)):totable(), 1e-6)
  local short = nn.Linear(4, 3)
  close(nn.Residual(other, short)(x):totable(), (other(x) + short(x)):totable(), 1e-6)
  local joined = nn.Parallel { inner, other }
  lu.assertEquals(joined(x).shape, { 2, 7 })
  close(nn.Parallel({ inner, nn.ReLU() }, { combine = "sum" })(x):totable(), (inner(x) + x:relu()):totable(), 1e-6)
  local both = nn.Parallel({ b = other, a = inner }, { combine = "table" })(x)
  lu.assertEquals(both.b.shape, { 2, 3 })
  lu.assertEquals(#joined:parameters(), 4)
  lu.assertEquals(joined:named_parameters()[1][1], "parts.1.bias")
  lu.assertEquals(nn.Unflatten(2, { 2, -1 })(x).shape, { 2, 2, 2 })
  fails("nn.Residual: the layer makes f32[2, 3], what is added is f32[2, 4]", nn.Residual(other), x)
  fails("nn.Residual: the layer is the class nn.Linear, not a layer", nn.Residual, nn.Linear)
  fails("combine is \"concat\", \"sum\" or \"table\", not 'mean'", nn.Parallel, { inner }, { combine = "mean" })
  fails("nn.Parallel: there are no parts", nn.Parallel, {})
end

-- A typed function is a layer without parameters: checked and inlined where the container is traced.
function TestContainers:test_typed_functions_are_parts()
  local function square(x) return x * x + 1 end
  local typed = dc.fn("square(x: f32[n, 4]) -> f32[n, 4]", square)
  local x, inner = dc.randn("f32[2, 4]", { seed = 1 }), nn.Linear(4, 4)
  local function made(part)
    return {
      nn.Sequential { inner, part, nn.Tanh() }, nn.Residual(part, inner), nn.Residual(inner, part),
      nn.Parallel { inner, part }, nn.Parallel({ a = inner, b = part }, { combine = "sum" }),
    }
  end
  local function gradients(layer)
    return dc.fn("g(a: f32[2, 4]) -> f32[2, 4], f32[4, 4]", function(a)
      local loss = layer(a):square():sum()
      return dc.grad(loss, a), dc.grad(loss, inner.weight)
    end)
  end
  local with, without = made(typed), made(square)
  for i, net in ipairs(with) do
    lu.assertEquals(#net:parameters(), 2)
    close(net(x):totable(), without[i](x):totable())
    local a, b = gradients(net)(x)
    local c, d = gradients(without[i])(x)
    close(a:totable(), c:totable(), 1e-5)
    close(b:totable(), d:totable(), 1e-5)
  end
  local halve = dc.fn("halve(v: f32[..., 4]) -> f32[..., 4]", function(v) return v / 2 end)
  local encoder = nn.TransformerEncoderLayer(4, 2, { feedforward = 4, activation = halve })
  lu.assertEquals(encoder(dc.ones "f32[3, 1, 4]").shape, { 3, 1, 4 })
  lu.assertStrContains(tostring(with[1]:summary "f32[2, 4]"), "nn.Tanh")
  fails("argument 'x' is f32[2, 3], declared f32[n=2, 4]", nn.Sequential { nn.Linear(4, 3), typed }, x)
  fails("part 1 is a userdata, not a layer", nn.Sequential, { x })
end

function TestContainers:test_dropout_of_channels()
  local x = dc.ones "f32[8, 16, 5]"
  local layer = nn.Dropout1d(0.5)
  local y = layer(x)
  lu.assertTrue(y:max(3):eq(y:min(3)):all():item())
  lu.assertTrue(y:mean():item() > 0.6 and y:mean():item() < 1.4)
  lu.assertEquals(layer:eval()(x), x)
  fails("nn.Dropout2d: x is f32[8, 16, 5]; [batch, channels] and 2 axes behind are needed", nn.Dropout2d(), x)
  dc.seed(3)
  local drawn = nn.AlphaDropout(0.3)(dc.randn("f32[20000]", { seed = 1 }))
  lu.assertAlmostEquals(drawn:mean():item(), 0, 0.05)
  lu.assertAlmostEquals(drawn:std():item(), 1, 0.05)
end

TestBags = {}

function TestBags:test_rows_and_offsets_agree()
  local flat, offsets = dc.tensor({ 1, 2, 3, 0, 3, 3 }, "i32"), dc.tensor({ 0, 3 }, "i32")
  for _, mode in ipairs { "sum", "mean", "max" } do
    for _, padding in ipairs { false, 3 } do
      local bag = nn.EmbeddingBag(4, 2, { mode = mode, padding_idx = padding or nil })
      bag.weight:set { { 1, -2 }, { 3, 4 }, { -5, 6 }, { 7, 8 } }
      close(bag(flat:reshape(2, 3)):totable(), bag(flat, { offsets = offsets }):totable(), 1e-6, mode)
    end
  end
  local bag = nn.EmbeddingBag(4, 2, { mode = "sum" })
  bag.weight:set { { 1, -2 }, { 3, 4 }, { -5, 6 }, { 7, 8 } }
  lu.assertEquals(bag(flat, { offsets = dc.tensor({ 0, 0, 5 }, "i32") }):totable(), { { 0, 0 }, { 13, 24 }, { 7, 8 } })
  lu.assertEquals(bag(dc.tensor({ { 0, 1 } }, "i32"), { per_sample_weights = dc.tensor { { 2, -1 } } }):totable(),
    { { -1, -8 } })
  fails('per_sample_weights are for mode "sum", not "mean"', nn.EmbeddingBag(4, 2), flat:reshape(2, 3),
    { per_sample_weights = dc.ones "f32[2, 3]" })
  fails("positions are i32[6]; integers[bags, n] are needed", bag, flat)
  fails("padding_idx is 4; rows are 0 to 3", nn.Embedding, 4, 2, { padding_idx = 4 })
end

function TestBags:test_a_padding_row_is_not_trained()
  local embed = nn.Embedding(4, 2, { padding_idx = -1 })
  lu.assertEquals(embed.weight[4]:totable(), { 0, 0 })
  local g = dc.grad(embed(dc.tensor({ 3, 1, 3 }, "i32")):sum(), embed.weight)
  lu.assertEquals(g:totable(), { { 0, 0 }, { 1, 1 }, { 0, 0 }, { 0, 0 } })
end

TestComputedWeights = {}

function TestComputedWeights:test_weight_norm()
  for _, make in ipairs { function() return nn.Linear(3, 2) end, function() return nn.Conv1d(2, 3, 2) end } do
    local layer = make()
    local before = layer.weight:clone()
    lu.assertEquals(nn.weight_norm(layer), layer)
    close(layer.weight:totable(), before:totable(), 1e-6)
    local names = {}
    for _, named in ipairs(layer:named_parameters()) do names[#names + 1] = named[1] end
    lu.assertEquals(table.concat(names, " "), "bias weight_g weight_v")
  end
  local layer = nn.weight_norm(nn.Linear(3, 2))
  layer.weight_g:set { { 2, 5 } }
  close((layer.weight * layer.weight):sum(1):totable(), { 4, 25 }, 1e-5)
  fails("nn.ReLU has no parameter 'weight'", nn.weight_norm, nn.ReLU())
end

-- Steps of training change length and direction; the spectral norm stays 1.
function TestComputedWeights:test_in_steps()
  local a, b = nn.weight_norm(nn.Linear(3, 4)), nn.spectral_norm(nn.Linear(4, 2), { iterations = 5 })
  local net = nn.Sequential { a, nn.Tanh(), b }
  local opt = optim.SGD(net:parameters(), { lr = 0.1 })
  local step = dc.fn("step(x: f32[5, 3]) -> f32[]", function(x)
    local loss = (net(x) - 1):square():mean()
    opt:step(loss)
    return loss
  end)
  local x = dc.randn("f32[5, 3]", { seed = 1 })
  local first = step(x):item()
  for _ = 1, 20 do step(x) end
  lu.assertTrue(step(x):item() < first)
  net:eval()
  local w = b.weight
  local v = dc.ones "f32[2, 1]"
  for _ = 1, 50 do
    v = w:transpose():matmul(w:matmul(v))
    v = v / v:square():sum():sqrt()
  end
  lu.assertAlmostEquals(w:matmul(v):square():sum():sqrt():item(), 1, 1e-3)
end
