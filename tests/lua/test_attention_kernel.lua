-- Attention as one kernel that stores no matrix of weights (jit/rewrite/attention.h): its values and gradients beside
-- the same formula in f64, whose contractions are kernels of their own.
-- luacheck: ignore 431 432
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

TestAttentionKernel = {}

local device = os.getenv "DEEPC_DEVICE" or "cpu"
local blocks = device:find "^cpu" or device == "sim:cpu"
local strict = (os.getenv "DEEPC_MATH" or ""):find "strict"

local function random(shape, dtype, seed)
  return dc.randn(("%s[%s]"):format(dtype, table.concat(shape, ", ")), { seed = seed })
end

local function type_of(shape, dtype)
  return ("%s[%s]"):format(dtype, table.concat(shape, ", "))
end

-- The result and the gradients of a sum of cubes of it, for q, k and v.
local function passes(formula, q, k, v, dtype)
  local y = { table.unpack(q) }
  y[#y] = v[#v]
  local takes = ("q: %s, k: %s, v: %s"):format(type_of(q, dtype), type_of(k, dtype), type_of(v, dtype))
  local gives = ("%s, %s, %s, %s"):format(type_of(y, dtype), type_of(q, dtype), type_of(k, dtype), type_of(v, dtype))
  return dc.fn(("passes(%s) -> %s"):format(takes, gives), function(q, k, v)
    local y = formula(q, k, v)
    return y, table.unpack(dc.grad((y * y * y):sum(), { q, k, v }))
  end)
end

local function worst(a, b)
  local d = (a:cast "f64" - b):abs():max():item()
  return d / math.max(b:abs():max():item(), 1e-30)
end

-- Are a formula's results in f32 near those in f64? What f32 has of a kernel of attention is told by its name, A_...
local function compare(what, formula, q, k, v, seed, fused)
  local f, wide = passes(formula, q, k, v, "f32"), passes(formula, q, k, v, "f64")
  local a, b, c = random(q, "f32", seed), random(k, "f32", seed + 1), random(v, "f32", seed + 2)
  local got = { f(a, b, c) }
  local want = { wide(a:cast "f64", b:cast "f64", c:cast "f64") }
  for i, name in ipairs { "y", "dq", "dk", "dv" } do
    local error = worst(got[i], want[i])
    lu.assertTrue(error < 2e-5, ("%s: %s is off by %g (seed %d)"):format(what, name, error, seed))
  end
  local text = f:explain()
  if blocks and not strict and fused ~= nil then
    lu.assertEquals(text:find("A_%d") ~= nil, fused, what .. "\n" .. text)
  end
  return text
end

local function attention(options)
  return function(q, k, v)
    local y = nn.scaled_dot_product_attention(q, k, v, options)
    return y
  end
end

function TestAttentionKernel:test_sizes()
  for i, c in ipairs { { 256, 256, 8 }, { 4099, 16, 1 }, { 17, 3857, 3 }, { 33, 1997, 20 }, { 65, 1055, 13, 7 },
    { 130, 517, 48, 80 } } do
    local t, s, d, n = c[1], c[2], c[3], c[4] or c[3]
    for _, causal in ipairs { false, true } do
      compare(("%d by %d, %d, %d%s"):format(t, s, d, n, causal and ", causal" or ""), attention { causal = causal },
        { 2, t, d }, { 2, s, d }, { 2, s, n }, 10 * i, true)
    end
  end
end

-- How many kernels of attention there are.
local function kernels(text)
  local names = {}
  for name in text:gmatch "A_[%w_]+" do
    names[name] = true
  end
  local n = 0
  for _ in pairs(names) do
    n = n + 1
  end
  return n
end

-- Gradients are one kernel whose rows are keys, all of a batch for each thread. Few batches have parts, unless
-- keys cannot be cut in equal ones, or these are small.
function TestAttentionKernel:test_gradients_are_one_kernel()
  local sizes = { { 256, 256, 8, 8, 2 }, { 300, 257, 20, 33, 3 }, { 80, 936, 48, 80, 2 }, { 1100, 64, 17, 17, 3 } }
  for i, c in ipairs(sizes) do
    local t, s, d, n, few = table.unpack(c)
    for _, causal in ipairs { false, true } do
      for _, batches in ipairs { 3, 8 } do
        local what = ("%d of %d by %d, %d, %d%s"):format(batches, t, s, d, n, causal and ", causal" or "")
        local text = compare(what, attention { causal = causal }, { batches, t, d }, { batches, s, d },
          { batches, s, n }, 10 * i, true)
        if blocks and not strict then
          lu.assertEquals(kernels(text), batches == 8 and 2 or few, what .. "\n" .. text)
        end
      end
    end
  end
end

-- Not of all operands, and of queries that are keys.
function TestAttentionKernel:test_some_gradients()
  local shape = { 8, 256, 16 }
  local q, k, v = random(shape, "f32", 1), random(shape, "f32", 2), random(shape, "f32", 3)
  for _, of in ipairs { { 1, 2 }, { 1, 3 }, { 2, 3 }, { 1 }, { 2 }, { 3 } } do
    local function make(dtype)
      local t = type_of(shape, dtype)
      return dc.fn(("some(q: %s, k: %s, v: %s) -> %s"):format(t, t, t, table.concat({ t, #of > 1 and t or nil }, ", ")),
        function(q, k, v)
          local y = nn.scaled_dot_product_attention(q, k, v)
          local wanted = {}
          for i, n in ipairs(of) do
            wanted[i] = ({ q, k, v })[n]
          end
          return table.unpack(dc.grad((y * y * y):sum(), wanted))
        end)
    end
    local got = { make "f32"(q, k, v) }
    local want = { make "f64"(q:cast "f64", k:cast "f64", v:cast "f64") }
    for i in ipairs(of) do
      lu.assertTrue(worst(got[i], want[i]) < 2e-5)
    end
  end
  compare("of itself", function(q, k, v)
    local y = nn.scaled_dot_product_attention(q + k, q, q + v, { causal = true })
    return y
  end, shape, shape, shape, 4, true)
end

-- One row is no matrix, and matrices that stay in caches are faster as products.
function TestAttentionKernel:test_few_rows_are_several_kernels()
  compare("decode", attention(), { 3, 1, 16 }, { 3, 200, 16 }, { 3, 200, 16 }, 1, false)
  for _, t in ipairs { 1, 16, 17, 64, 255 } do
    compare("few", attention { causal = true }, { 3, t, 16 }, { 3, t, 16 }, { 3, t, 16 }, t, false)
  end
  local forward = dc.fn("forward(q: f32[128, 8]) -> f32[128, 8]", function(q)
    return (nn.scaled_dot_product_attention(q, q, q))
  end)
  local q = random({ 128, 8 }, "f32", 1)
  local wide = q:cast "f64"
  lu.assertTrue(worst(forward(q), (nn.scaled_dot_product_attention(wide, wide, wide))) < 2e-5)
  lu.assertEquals(forward:explain():find "A_%d" ~= nil, (blocks and not strict) and true or false)
end

function TestAttentionKernel:test_without_batches()
  compare("one head", attention { causal = true }, { 260, 24 }, { 260, 24 }, { 260, 24 }, 7, true)
end

function TestAttentionKernel:test_grouped()
  compare("grouped", attention { enable_gqa = true, causal = true }, { 2, 6, 260, 16 }, { 2, 2, 260, 16 },
    { 2, 2, 260, 16 }, 5, true)
end

function TestAttentionKernel:test_masks()
  local bools = (random({ 240, 290 }, "f32", 3)):gt(-0.5)
  bools = bools & dc.iota(240):ne(7):reshape(-1, 1) -- a row that nothing counts for
  for _, causal in ipairs { false, true } do
    compare(causal and "bools, causal" or "bools", attention { mask = bools, causal = causal }, { 2, 240, 16 },
      { 2, 290, 16 }, { 2, 290, 16 }, 11, true)
  end
  local bias = random({ 2, 240, 290 }, "f32", 4)
  compare("bias", function(q, k, v)
    local s = q:matmul(k:transpose()) + bias:cast(q.dtype)
    return s:softmax(-1):matmul(v)
  end, { 2, 240, 16 }, { 2, 290, 16 }, { 2, 290, 16 }, 13, true)
  compare("soft cap", function(q, k, v)
    local s = (q:matmul(k:transpose()) / 5):tanh() * 5
    return s:softmax(-1):matmul(v)
  end, { 2, 240, 16 }, { 2, 290, 16 }, { 2, 290, 16 }, 17, true)
  for _, width in ipairs { 2, 100 } do -- keys i - width < j <= i
    compare("window of " .. width, function(q, k, v)
      local i, j = dc.iota(300):reshape(-1, 1), dc.iota(300):reshape(1, -1)
      local counts = j:le(i) & i:lt(j + width)
      local s = dc.where(counts, q:matmul(k:transpose()), -math.huge)
      return s:softmax(-1):matmul(v)
    end, { 300, 8 }, { 300, 8 }, { 300, 8 }, 19, true)
  end
end

-- Keys behind a query, of which some come before it: the other way round.
function TestAttentionKernel:test_anticausal()
  compare("anticausal", function(q, k, v)
    local i, j = dc.iota(230):reshape(-1, 1), dc.iota(290):reshape(1, -1)
    local s = dc.where(i:lt(j), q:matmul(k:transpose()), -math.huge)
    return s:softmax(-1):matmul(v)
  end, { 2, 230, 8 }, { 2, 290, 8 }, { 2, 290, 8 }, 23, true)
end

-- Rows of nothing but -inf are NaN, whatever their blocks, and others are not.
function TestAttentionKernel:test_rows_of_nothing()
  local q, k = random({ 100, 16 }, "f32", 1), random({ 200, 16 }, "f32", 2)
  local f = dc.fn("f(q: f32[100, 16], k: f32[200, 16]) -> f32[100, 16]", function(q, k)
    local s = dc.where(dc.iota(100):reshape(-1, 1):ge(30), q:matmul(k:transpose()), -math.huge)
    return s:softmax(-1):matmul(k)
  end)
  local y = f(q, k)
  lu.assertTrue(y[{ { 1, 30 } }]:isnan():all():item())
  lu.assertFalse(y[{ { 31, 100 } }]:isnan():any():item())
end

-- Scores so large that the maximum of each block is far from that of the next.
function TestAttentionKernel:test_large_scores()
  for _, order in ipairs { 1, -1 } do
    compare("large scores", function(q, k, v)
      local rise = (dc.iota(400):cast(q.dtype) * (0.5 * order)):reshape(1, -1)
      return (q:matmul(k:transpose()) + rise):softmax(-1):matmul(v)
    end, { 2, 170, 8 }, { 2, 400, 8 }, { 2, 400, 8 }, 29, true)
  end
  local f = dc.fn("f(q: f32[60, 8], k: f32[300, 8]) -> f32[60, 8]", function(q, k)
    local s = q:matmul(k:transpose())
    return dc.where(dc.iota(300):reshape(1, -1):eq(200), math.huge, s):softmax(-1):matmul(k)
  end)
  lu.assertTrue(f(dc.ones "f32[60, 8]", dc.ones "f32[300, 8]"):isnan():all():item())
end

-- Weights that are returned are stored, so there is no such kernel.
function TestAttentionKernel:test_weights_as_a_result()
  local f = dc.fn("f(q: f32[32, 8], k: f32[40, 8]) -> f32[32, 8], f32[32, 40]", function(q, k)
    local w = q:matmul(k:transpose()):softmax(-1)
    return w:matmul(k), w
  end)
  local q, k = random({ 32, 8 }, "f32", 1), random({ 40, 8 }, "f32", 2)
  local y, w = f(q, k)
  lu.assertTrue(worst(y, w:cast "f64":matmul(k:cast "f64")) < 1e-6)
  lu.assertNil(f:explain():find("A_%d"))
end

-- A contraction that takes the axis of queries for a batch: its weights are those of a softmax, its rows are not.
function TestAttentionKernel:test_other_axes()
  compare("queries as batches", function(q, k, v)
    local w = q:matmul(k:transpose()):softmax(-1) -- [24, t, s]
    return w:transpose(1, 2):matmul(v):transpose(1, 2)
  end, { 24, 20, 8 }, { 24, 40, 8 }, { 20, 40, 8 }, 37)
end

-- The sum of exponentials, and maxima, read by something else as well.
function TestAttentionKernel:test_rows_as_results()
  local f = dc.fn("f(q: f32[90, 8], k: f32[200, 8]) -> f32[90, 8], f32[90]", function(q, k)
    local s = q:matmul(k:transpose())
    local top = s:max { axis = -1, keep = true }
    local e = (s - top):exp()
    local sum = e:sum { axis = -1, keep = true }
    return e:matmul(k) / sum, (sum:log() + top):reshape(90)
  end)
  local q, k = random({ 90, 8 }, "f32", 1), random({ 200, 8 }, "f32", 2)
  local y, lse = f(q, k)
  local s = q:cast "f64":matmul(k:cast "f64":transpose())
  lu.assertTrue(worst(lse, s:logsumexp(-1)) < 1e-6)
  lu.assertTrue(worst(y, s:softmax(-1):matmul(k:cast "f64")) < 1e-6)
end

function TestAttentionKernel:test_several_layers()
  compare("two layers", function(q, k, v)
    local attend = attention { causal = true }
    local y = attend(q, k, v)
    return attend(y + q, k + y, v)
  end, { 2, 260, 16 }, { 2, 260, 16 }, { 2, 260, 16 }, 31, true)
end

-- A step of Adam counts its calls in an i32[], which might be a size: nothing of the attention ends there.
function TestAttentionKernel:test_step_with_a_counter()
  local layer = nn.Linear(16, 48)
  local opt = optim.Adam(layer:parameters(), { lr = 1e-3 })
  local step = dc.fn("step(x: f32[2, 260, 16]) -> f32[]", function(x)
    local p = layer(x):reshape(2, 260, 3, 16)
    local y = nn.scaled_dot_product_attention(p[{ {}, {}, 1 }], p[{ {}, {}, 2 }], p[{ {}, {}, 3 }], { causal = true })
    local loss = y:square():mean()
    opt:step(loss)
    return loss
  end)
  local x = random({ 2, 260, 16 }, "f32", 3)
  local first = step(x):item()
  for _ = 1, 5 do
    step(x)
  end
  lu.assertTrue(step(x):item() < first)
  if blocks and not strict then
    lu.assertNotNil(step:explain():find "A_%d")
  end
end

-- Keys before a size that is known at run time alone, and as many rows as there are.
function TestAttentionKernel:test_sizes_at_run_time()
  local text = "(q: %s[2, 40, 16], k: %s[2, 40, 16], v: %s[2, 40, 16], n: i32[]) -> %s[2, 40, 16], %s[2, 40, 16]"
  local function of(dtype)
    return dc.fn("f" .. text:gsub("%%s", dtype), function(q, k, v, n)
      local mask = dc.iota("i32[40]"):lt(n):reshape(1, 1, 40):expand(2, 40, 40)
      local y = nn.scaled_dot_product_attention(q, k, v, { mask = mask })
      return y, dc.grad(y:square():sum(), k)
    end)
  end
  local f, wide = of "f32", of "f64"
  local q, k, v = random({ 2, 40, 16 }, "f32", 1), random({ 2, 40, 16 }, "f32", 2), random({ 2, 40, 16 }, "f32", 3)
  for _, n in ipairs { 1, 17, 40 } do
    local y, dk = f(q, k, v, n)
    local want, wide_dk = wide(q:cast "f64", k:cast "f64", v:cast "f64", n)
    lu.assertTrue(worst(y, want) < 2e-5 and worst(dk, wide_dk) < 2e-5, "n = " .. n)
  end
  local rows = dc.fn("rows(q: f32[t <= 90, 16]) -> f32[t, 16]", function(q)
    local one = q:reshape(1, q:size(1), 16)
    local y = nn.scaled_dot_product_attention(one, one, one, { causal = true })
    return y:reshape(q:size(1), 16)
  end)
  for _, t in ipairs { 1, 16, 65, 90 } do
    local x = random({ t, 16 }, "f32", t)
    local one = x:cast "f64":reshape(1, t, 16)
    local want = nn.scaled_dot_product_attention(one, one, one, { causal = true })
    lu.assertTrue(worst(rows(x), want:reshape(t, 16)) < 2e-5, "t = " .. t)
  end
end

-- Temporaries grow with the length, not with its square.
function TestAttentionKernel:test_memory()
  local function temporaries(t)
    local f = dc.fn(("f(q: f32[1, %d, 16]) -> f32[1, %d, 16]"):format(t, t), function(q)
      local y = nn.scaled_dot_product_attention(q, q, q, { causal = true })
      return dc.grad(y:square():sum(), q)
    end)
    f(dc.ones(("f32[1, %d, 16]"):format(t)))
    return tonumber(f:explain():match "temporaries +([%d.]+) KiB")
  end
  if blocks and not strict then
    lu.assertTrue(temporaries(4096) < 2.1 * temporaries(2048))
  end
end

-- Options, sizes and masks at random.
function TestAttentionKernel:test_random()
  local seed = tonumber(os.getenv "DEEPC_SEED") or os.time()
  math.randomseed(seed)
  for n = 1, 4 do
    local t, s, d = math.random(1, 500), math.random(1, 500), math.random(1, 70)
    local e, heads = math.random(1, 70), math.random(1, 3)
    local options = { causal = math.random(2) == 1, scale = math.random() }
    if math.random(3) == 1 then
      options.mask = random({ t, s }, "f32", n):gt(-1)
    end
    local text = ("random %d of seed %d: %d heads, %d by %d, %d, %d%s%s"):format(n, seed, heads, t, s, d, e,
      options.causal and ", causal" or "", options.mask and ", mask" or "")
    compare(text, attention(options), { heads, t, d }, { heads, s, d }, { heads, s, e }, n)
  end
end

