-- Bounded dims: a function with one gives what a specialisation for each size gives, on one compilation.
local lu = require "luaunit"
local dc = require "deepc"

-- Name, parameters with T for a bounded dim, body, least size.
local cases = {
  { "sum1", "x: f32[T, 3]", function(x) return x:sum(1) end },
  { "sum2", "x: f32[4, T]", function(x) return x:sum(2) end },
  { "max", "x: f32[4, T]", function(x) return x:max(2), x:min(2), x:prod(2) end },
  { "mean", "x: f32[2, T, 3]", function(x) return x:mean(2), x:mean(), x:var(2), x:std(2) end },
  { "softmax", "x: f32[4, T]", function(x) return x:softmax(2), x:softmax(1) end },
  { "logsumexp", "x: f32[4, T]", function(x) return x:logsumexp(2), x:argmax(2), x:argmin(2) end },
  { "matmul_m", "x: f32[T, 5], w: f32[5, 7]", function(x, w) return x:matmul(w) end },
  { "matmul_k", "x: f32[3, T], w: f32[T, 7]", function(x, w) return x:matmul(w) end },
  { "matmul_n", "x: f32[3, 5], w: f32[5, T]", function(x, w) return x:matmul(w) end },
  { "attend", "q: f32[2, T, 4], k: f32[2, T, 4], v: f32[2, T, 4]", function(q, k, v)
    local s = dc.einsum("h t d, h s d -> h t s", q, k) / 2
    return s:softmax(3):matmul(v) end },
  { "rows", "x: f32[8, T, T]", function(x) return x:softmax(3), x:transpose(2, 3) end }, -- in many short runs
  { "transpose", "x: f32[T, 3]", function(x) return x:transpose() end },
  { "concat", "x: f32[T, 3], y: f32[2, 3]", function(x, y) return dc.concat({ x, y, x }, 1), dc.concat({y, x}, 1) end },
  { "slice", "x: f32[T, 3]", function(x)
    return x[{ { 2, -1 } }], x[-1], x[1], x[{ {}, { 2, 3 } }], x[{ { 1, -1, 2 } }]
  end },
  { "flip", "x: f32[T, 3]", function(x) return x:flip(1), x[{ { -1, 1, -1 } }] end },
  { "roll", "x: f32[T, 3], y: f32[2, T]", function(x, y)
    return x:roll(2, 1), x:roll(-5, 1), y:roll(0, 2), y:roll(1 << 40, 2), x:roll(2, 2)
  end },
  { "split", "x: f32[T, 3], y: f32[2, T]", function(x, y)
    local both = dc.concat({ x, x }, 1)
    local a, b = both:split(2)
    local first, last = x:split { #x - 1, 1 }
    local zero, all = y:split({ #x // 2, #x - #x // 2 }, 2)
    local left, middle, right = dc.concat({ x, x[{ { 2, -1 } }], both }, 1):split { #x, #x - 1, 2 * #x }
    return a + 2 * b, first, last, zero, all, left, middle, right
  end },
  { "vmap", "x: f32[T, 3], y: f32[2, T, 3]", function(x, y)
    local s = dc.loop(function(c) return c:sum():lt(90) end, function(c) return c * 2 + 1 end, dc.zeros "f32[3]")
    return dc.vmap(function(a) return a:softmax(1) * a:sum() + s end)(x),
      dc.vmap(function(a, b) return b:matmul(a) end, { in_axes = { 1, 2 } })(x, y),
      dc.vmap(function(a) return dc.vmap(function(b) return (a * b):sum() end)(x) end)(x):sum(2)
  end },
  { "pad", "x: f32[T, 3]", function(x) return x:pad({ { 1, 2 } }, 9) end },
  { "reshape", "x: f32[T, 6]", function(x) return x:reshape(-1), x:reshape(-1, 2, 3), x:reshape(-1, 3) end },
  { "reshape2", "x: f32[4, T]", function(x)
    return x:reshape(-1), x:flatten(), x:reshape(2, -1), x:reshape(2, 2, -1)
  end },
  { "reshape3", "x: f32[T, 2, T]", function(x) return x:reshape(-1), x:flatten(1, 2), x:flatten(2, 3) end },
  { "take", "x: f32[T, 3], i: i32[2]", function(x, i) return x:take(i % x:size(1), 1) end },
  { "take2", "x: f32[5, 3], i: i32[T]", function(x, i) return x:take(i % 5, 1) end },
  { "put", "x: f32[T, 3]", function(x) return x:put({ 1 }, 7), x:put({ -1 }, 7), x:put({ {}, 2 }, 0) end },
  { "put2", "x: f32[5, 3], i: i32[T], y: f32[T, 3]", function(x, i, y) return x:put(i % 5, y) end },
  { "cumsum", "x: f32[3, T]", function(x)
    return x:cumsum(2), x:cumsum { axis = 2, reverse = true }, x:cumprod(2), x:cummax(2), x:logcumsumexp(2)
  end },
  { "cumsum0", "x: f32[3, T]", function(x) return x:cumsum(1) end },
  { "where", "x: f32[T, 3]", function(x) return dc.where(x:gt(2), x, 0) + dc.zeros(x) end },
  { "iota", "x: f32[T, 3]", function(x) return dc.iota(x, 1) + dc.iota("f32[t, 3]", 2) end },
  { "full", "x: f32[T, 3]", function(x) return x + dc.full("f32[t, 1]", 2) end },
  { "size", "x: f32[T, 3]", function(x)
    return x / x:size(1), x * #x, type(x:size(1)) ~= "number" and (x:size(1) * 2 + 1):cast "f32" or dc.full("f32[]",
      x:size(1) * 2 + 1), x + dc.dim "t"
  end },
  { "scan", "x: f32[T, 3]", function(x)
    local c, ys = dc.scan(function(c, v) c = c * 0.5 + v; return c, c * 2 end, dc.zeros "f32[3]", x)
    return c, ys end },
  { "scanr", "x: f32[T, 3]", function(x)
    local c, ys = dc.scan(function(c, v) c = c * 0.5 + v; return c, c * 2 end, dc.zeros "f32[3]", x, { reverse = true })
    return c, ys end },
  { "map", "x: f32[T, 3]", function(x) return dc.map(function(v) return v:sum() end, x) end },
  { "fori", "x: f32[3, T]", function(x)
    return dc.fori(x:size(2), function(i, c) return c + x:take(i, 2) end, dc.zeros "f32[3]")
  end },
  { "scan_in", "x: f32[4, T]", function(x)
    local c = dc.scan(function(c, v) return c + v:softmax(1) end, dc.zeros "f32[t]", x); return c end },
  { "cond", "x: f32[T, 3]", function(x)
    return dc.cond(x:sum():gt(20), function(a) return a:sum(1) end, function(a) return a:max(1) end, x)
  end },
  { "conv1", "x: f32[2, 3, T], w: f32[4, 3, 3]", function(x, w)
    return dc.conv1d(x, w, { padding = 1 }), dc.conv1d(x, w, { padding = 1, stride = 2 })
  end, 3 },
  { "convb", "x: f32[T, 3, 6], w: f32[4, 3, 3]", function(x, w) return dc.conv1d(x, w, { padding = 1 }) end },
  { "pool", "x: f32[2, 3, T]", function(x)
    return dc.max_pool1d(x, 2, { padding = 1 }), dc.avg_pool1d(x, 3, { padding = 1, stride = 1 })
  end, 2 },
  { "one_hot", "i: i32[T]", function(i) return (i % 5):one_hot(5) end },
  { "tril", "x: f32[T, T]", function(x) return x:tril(), x:triu() end },
  { "stack", "x: f32[T], y: f32[T]", function(x, y) return dc.stack { x, y }, dc.stack({ x, y }, 2) end },
  { "norm", "x: f32[T, 3]", function(x) return x:norm(), x:norm(1) end },
  { "roll", "x: f32[T, 3]", function(x) return x:roll(1, 2) end },
  { "expand", "x: f32[1, 3], y: f32[T, 3]", function(x, y) return x:expand(#y, 3), x + y end },
  { "grad_mean", "x: f32[T, 5], w: f32[5, 7]", function(x, w)
    return table.unpack(dc.grad(((x:matmul(w)):tanh() ^ 2):mean(), { x, w })) end },
  { "grad_attend", "q: f32[2, T, 4], k: f32[2, T, 4], v: f32[2, T, 4]", function(q, k, v)
    local s = dc.einsum("h t d, h s d -> h t s", q, k) / 2
    return table.unpack(dc.grad((s:softmax(3):matmul(v) ^ 2):sum(), { q, k, v })) end },
  { "grad_conv", "x: f32[2, 3, T], w: f32[4, 3, 3]", function(x, w)
    return table.unpack(dc.grad((dc.conv1d(x, w, { padding = 1, stride = 2 }) ^ 2):mean(), { x, w })) end, 3 },
  { "grad_convb", "x: f32[T, 3, 6], w: f32[4, 3, 3]", function(x, w)
    return table.unpack(dc.grad((dc.conv1d(x, w, { padding = 1, stride = 2 }) ^ 2):mean(), { x, w })) end },
  { "pool_seen", "x: f32[2, 3, T, 5]", function(x)
    local y = dc.avg_pool2d(x, { 3, 2 }, { padding = 1, stride = { 2, 1 }, count_padding = false })
    local z = dc.avg_pool1d(x[1]:reshape(3, 5, -1), 2, { padding = 1, count_padding = false })
    return y, z, dc.grad((y ^ 3):sum() + (z ^ 3):sum(), x)
  end },
  { "grad_pool", "x: f32[2, 3, T]", function(x)
    local loss = (dc.max_pool1d(x, 2) ^ 2):sum() + dc.avg_pool1d(x, 3, { stride = 1 }):mean()
    return table.unpack(dc.grad(loss, { x }))
  end, 3 },
  { "grad_scan", "x: f32[T, 3], w: f32[3, 3]", function(x, w)
    local c, ys = dc.scan(function(c, v) c = (c:matmul(w) + v):tanh(); return c, c end, dc.zeros "f32[3]", x)
    return table.unpack(dc.grad((ys ^ 2):mean() + c:sum(), { x, w })) end },
  { "associative", "x: f32[T, 3], y: f32[2, T]", function(x, y)
    local r = dc.associative_scan(function(a, b)
      return { k = a.k * b.k, x = a.x * b.k + b.x }
    end, { k = x:tanh(), x = x }, { reverse = true })
    local best = dc.associative_scan(function(a, b) return a:maximum(b) end, y, { axis = 2 })
    return r.x, r.k, best, table.unpack(dc.grad((r.x ^ 2):mean() + best:sum(), { x, y }))
  end },
  { "grad_take", "x: f32[T, 3], i: i32[4]", function(x, i)
    return table.unpack(dc.grad((x:take(i % x:size(1), 1) ^ 2):sum(), { x }))
  end },
  { "grad_prod", "x: f32[2, T]", function(x)
    return table.unpack(dc.grad((x * 0.3):prod(2):sum(), { x }))
  end },
  { "grad_cum", "x: f32[2, T]", function(x)
    return table.unpack(dc.grad((x:cumsum(2) ^ 2):mean(), { x }))
  end },
  { "grad_concat", "x: f32[T, 3], y: f32[2, 3]", function(x, y)
    return table.unpack(dc.grad((dc.concat({ y, x, x }, 1) ^ 2):sum(), { x, y }))
  end },
  { "grad_slice", "x: f32[T, 3]", function(x)
    return table.unpack(dc.grad((x[-1] ^ 2):sum() + (x[{ { 2, -1 } }] ^ 3):sum(), { x }))
  end },
  { "grad_reshape", "x: f32[4, T]", function(x)
    return table.unpack(dc.grad((x:reshape(-1) ^ 2):mean(), { x }))
  end },
  { "grad_max", "x: f32[4, T]", function(x)
    return table.unpack(dc.grad((x:max(2) ^ 2):sum() + x:logsumexp(2):sum(), { x }))
  end },
  { "grad_put", "x: f32[5, 3], i: i32[T], y: f32[T, 3]", function(x, i, y)
    return table.unpack(dc.grad((x:put(i % 5, y) ^ 2):sum(), { x, y }))
  end },
}

local BOUND, SIZES = 9, { 5, 1, 9, 2, 7, 4 }

local function signature(params, declared)
  return "f(" .. params:gsub("T", declared, 1):gsub("T", "t") .. ")"
end

-- Tensors of the parameters for this size: numbers, or NaN everywhere.
local function arguments(params, n, poison)
  local list = {}
  for dtype, dims in params:gmatch "(%w+)%[([^%]]*)%]" do
    local type = dtype .. "[" .. dims:gsub("T", tostring(n)) .. "]"
    if dtype == "i32" then
      list[#list + 1] = dc.randint(type, { seed = n, low = 0, high = 50 })
    else
      list[#list + 1] = poison and dc.full(type, 0 / 0) or dc.randn(type, { seed = n + #list })
    end
  end
  return table.unpack(list)
end

local function near(a, b)
  if type(a) == "table" then
    if #a ~= #b then
      return false
    end
    for i = 1, #a do
      if not near(a[i], b[i]) then
        return false
      end
    end
    return true
  end
  return a == b or (a ~= a and b ~= b) or math.abs(a - b) <= 1e-5 * math.max(1, math.abs(b))
end

local function values(x)
  return #x.shape == 0 and { x:item() } or x:totable()
end

TestBounded = {}

-- What is behind the actual size in memory is NaN, of the first call.
function TestBounded:test_operations_give_what_fixed_sizes_give()
  for _, case in ipairs(cases) do
    local name, params, body, least = table.unpack(case)
    least = least or 1
    local bounded = dc.fn(signature(params, ("%d <= t <= %d"):format(least, BOUND)), body)
    local fixed = dc.fn(signature(params, "t"), body, nil, { limit = #SIZES })
    pcall(bounded, arguments(params, BOUND, true))
    for _, n in ipairs(SIZES) do
      if n >= least then
        local got, want = { bounded(arguments(params, n)) }, { fixed(arguments(params, n)) }
        lu.assertEquals(#got, #want, name)
        for i = 1, #got do
          local what = ("%s, result %d of size %d: %s, not %s"):format(name, i, n, got[i], want[i])
          lu.assertEquals(got[i].shape, want[i].shape, what)
          lu.assertTrue(near(values(got[i]), values(want[i])), what)
        end
      end
    end
    lu.assertStrContains(bounded:explain(), "1 specialisation,")
  end
end

function TestBounded:test_several_dims_and_expressions()
  local function both(x, y)
    return dc.concat({ x, y }, 1), x:matmul(y:transpose()), x:reshape(-1)
  end
  local f = dc.fn("f(x: f32[n <= 6, m <= 5], y: f32[2*n + 1, m]) -> f32[3*n + 1, m], f32[n, 2*n + 1], f32[n*m]", both)
  local g = dc.fn("g(x: f32[n, m], y: f32[2*n + 1, m])", both, nil, { limit = 100 })
  for n = 1, 6 do
    for m = 1, 5 do
      local x = dc.randn(("f32[%d, %d]"):format(n, m), { seed = n })
      local y = dc.randn(("f32[%d, %d]"):format(2 * n + 1, m), { seed = m })
      local got, want = { f(x, y) }, { g(x, y) }
      for i = 1, 3 do
        lu.assertEquals(got[i].shape, want[i].shape)
        lu.assertTrue(near(values(got[i]), values(want[i])))
      end
    end
  end
  lu.assertErrorMsgContains("against 2*n + 1 = 5", f, dc.zeros "f32[2, 3]", dc.zeros "f32[6, 3]")
end

function TestBounded:test_bounds_in_the_third_argument()
  local f = dc.fn("f(x: f32[n, 3]) -> f32[n], f32[]", function(x) return x:sum(2), x:mean() end, { n = "<= 4" })
  lu.assertEquals({ #f(dc.ones "f32[2, 3]"), #f(dc.ones "f32[4, 3]") }, { 2, 4 })
  lu.assertErrorMsgContains("n = 5: a size from 1 to 4", f, dc.ones "f32[5, 3]")
  local g = dc.fn("g(x: f32[n, 3]) -> f32[]", function(x) return x:sum() end, { n = "0 <= 4" })
  lu.assertEquals(g(dc.ones "f32[0, 3]"):item(), 0)
  lu.assertEquals(g(dc.ones "f32[3, 3]"):item(), 9)
end

function TestBounded:test_a_function_is_traced_when_it_is_defined()
  lu.assertErrorMsgContains("inner dims differ", dc.fn, "f(x: f32[t <= 8, 3])", function(x)
    return x:matmul(dc.ones "f32[4, 2]")
  end)
end

function TestBounded:test_functions_in_functions()
  local inner = dc.fn("inner(x: f32[n <= 8]) -> f32[n], f32[]", function(x) return x * 2, x:sum() end)
  local outer = dc.fn("outer(x: f32[t <= 5], y: f32[3]) -> f32[t], f32[], f32[]", function(x, y)
    local a, b = inner(x)
    local _, c = inner(y)
    return a, b, c
  end)
  local a, b, c = outer(dc.tensor { 1, 2 }, dc.tensor { 1, 1, 1 })
  lu.assertEquals({ a:totable(), b:item(), c:item() }, { { 2, 4 }, 3, 3 })
  lu.assertErrorMsgContains("a size from 1 to 8", dc.fn, "o(x: f32[t <= 9]) -> f32[t]", function(x)
    return (inner(x))
  end)
end

function TestBounded:test_results_are_kept_and_given_on()
  local f = dc.fn("f(x: f32[t <= 8, 2]) -> f32[t, 2], f32[2, t]", function(x) return x + 1, x:transpose() * 2 end)
  local a, b = f(dc.ones "f32[3, 2]")
  local c, d = f(a)
  f(dc.zeros "f32[8, 2]")
  lu.assertEquals({ a:sum():item(), b:sum():item(), c:sum():item(), d:sum():item() }, { 12, 12, 18, 24 })
  lu.assertEquals({ c.shape, d.shape }, { { 3, 2 }, { 2, 3 } })
end

-- Of texts of several lengths: each token by those before it. b * (t - 1) labels are never fewer than none.
function TestBounded:test_labels_behind()
  local nn, w = require "deepc.nn", dc.randn("f32[10, 10]", { seed = 3 })
  local function body(ids)
    local logits, labels = w:take(ids[{ {}, { 1, -2 } }], 1), ids[{ {}, { 2, -1 } }]
    return nn.cross_entropy(logits, labels), labels:reshape(-1)
  end
  local bounded = dc.fn("f(ids: i32[b <= 4, 2 <= t <= 9]) -> f32[], i32[n]", body)
  for _, sizes in ipairs { { 1, 2 }, { 4, 9 }, { 3, 5 } } do
    local ids = dc.randint(("i32[%d, %d]"):format(table.unpack(sizes)), { high = 10, seed = 5 })
    local loss, flat = bounded(ids)
    local want, all = body(ids)
    lu.assertAlmostEquals(loss:item(), want:item(), 1e-6)
    lu.assertEquals(flat:totable(), all:totable())
  end
  lu.assertErrorMsgContains("class 10 outside 0..9 at row 2", bounded, dc.tensor({ { 1, 2, 10 } }, "i32"))
end

function TestBounded:test_random_numbers_and_layers()
  local nn = require "deepc.nn"
  local net = nn.Sequential { nn.Linear(3, 4), nn.ReLU(), nn.LayerNorm(4), nn.Dropout(0.5), nn.Linear(4, 2) }
  local step = dc.fn("step(x: f32[t <= 16, 3], y: i32[t]) -> f32[], f32[t, 2]", function(x, y)
    local out = net(x)
    return nn.cross_entropy(out, y), out
  end)
  for _, n in ipairs { 3, 16, 1 } do
    local loss, out = step(dc.randn(("f32[%d, 3]"):format(n)), dc.zeros(("i32[%d]"):format(n)))
    lu.assertEquals(out.shape, { n, 2 })
    lu.assertTrue(loss:item() > 0)
  end
  local take = dc.fn("take(x: f32[4, t <= 8], i: i32[3, n <= 9]) -> f32[4, 3, n]", function(x, i)
    return x:take(i, 2)
  end)
  lu.assertErrorMsgContains("index 5 outside 0..4 of axis 2 at position [2, 2]", take, dc.ones "f32[4, 5]",
    dc.tensor({ { 0, 1 }, { 2, 5 }, { 0, 0 } }, "i32"))
  lu.assertErrorMsgContains("class 2 outside 0..1", step, dc.zeros "f32[2, 3]", dc.tensor({ 0, 2 }, "i32[2]"))
end

function TestBounded:test_jobs()
  local f = dc.fn("f(x: f32[t <= 8]) -> f32[t]", function(x) return x * 2 end)
  local job = f:start(dc.tensor { 1, 2, 3 })
  while not job:poll { ms = 1 } do end
  lu.assertEquals(job:result():totable(), { 2, 4, 6 })
end

function TestBounded:test_sizes_in_lua()
  local f = dc.fn("f(x: f32[t <= 8, 3]) -> f32[]", function(x)
    local n = x:size(1)
    lu.assertEquals({ tostring(n), tostring(2 * n - 1), tostring(n * x:size(2)), tostring((n + 1) // 2) },
      { "t (up to 8)", "2*t - 1 (up to 15)", "3*t (up to 24)", "(t + 1)//2 (up to 4)" })
    lu.assertTrue(n == #x and n + 1 ~= n and x.shape[1] == n and x.shape[2] == 3)
    lu.assertErrorMsgContains("order comparison", function() return n > 3 end)
    return (n / 2):reshape() + n ^ 2 - n * dc.ones "f32[]" + dc.dim "t"
  end)
  lu.assertEquals(f(dc.zeros "f32[4, 3]"):item(), 2 + 16 - 4 + 4)
end

-- What may be below 0, or always is, is a scalar with that value.
function TestBounded:test_sizes_below_zero()
  local function run(x)
    local n = x:size(1)
    return (n * 2 - 3):cast "i32", n - 10 + 0 * x:sum():cast "i32", (7 - n):cast "i32" + n * -2, (-3 + n) * x,
      (n + -9) * 100 + (-20 + n), ((n - 10) // 3) * 10 + (n - 10) % 3
  end
  local f = dc.fn("f(x: f32[t <= 8])", run)
  for n = 1, 8 do
    local x = dc.iota(("f32[%d]"):format(n))
    local got = { f(x) }
    for i, want in ipairs { 2 * n - 3, n - 10, 7 - n - 2 * n, (x * (n - 3)):totable(), (n - 9) * 100 + n - 20,
      (n - 10) // 3 * 10 + (n - 10) % 3 } do
      lu.assertEquals(i == 4 and got[i]:totable() or got[i]:item(), want)
    end
  end
  lu.assertErrorMsgContains("no size of a form", dc.fn, "f(x: f32[t <= 8])", function(x)
    return dc.iota(#x * #x * #x * #x)
  end)
end

function TestBounded:test_sizes_are_printed_at_each_call()
  local seen, print_before = {}, print
  local f = dc.fn("f(x: f32[t <= 8])", function(x)
    dc.print("n", #x, 2 * #x + 1)
    return dc.fori(2, function(i, c)
      dc.print(i, #x)
      return c + i
    end, x:sum():cast "i32")
  end)
  print = function(...) -- luacheck: ignore
    local texts = { ... }
    for i, text in ipairs(texts) do
      texts[i] = tostring(text)
    end
    seen[#seen + 1] = table.concat(texts, " ")
  end
  local ok, err = pcall(function()
    f(dc.zeros "f32[3]")
    f(dc.zeros "f32[5]")
  end)
  print = print_before -- luacheck: ignore
  lu.assertTrue(ok, err)
  lu.assertEquals(seen, { "n 3 7", "0 3", "1 3", "n 5 11", "0 5", "1 5" })
end

function TestBounded:test_norms_over_a_bounded_axis()
  local nn = require "deepc.nn"
  local function run(x) return nn.layer_norm(x, x:size(2)), nn.rms_norm(x, { 3, x.shape[2] }) end
  local bounded, fixed = dc.fn("f(x: f32[3, t <= 8])", run), dc.fn("g(x: f32[3, t])", run)
  for n = 2, 8, 3 do
    local x = dc.randn(("f32[3, %d]"):format(n), { seed = n })
    local a, b = bounded(x)
    local c, e = fixed(x)
    lu.assertTrue(near(a:totable(), c:totable()) and near(b:totable(), e:totable()))
  end
  lu.assertErrorMsgContains("the last axes are [t + 1", dc.fn, "f(x: f32[3, t <= 8])", function(x)
    return nn.layer_norm(x, x:size(2) + 1)
  end)
end

function TestBounded:test_ranges_up_to_a_size()
  local f = dc.fn("f(x: f32[t <= 4, 2], room: f32[6, 2]) -> f32[6, 2], f32[t, 2], f32[2]", function(x, room)
    return room:put({ { 1, #x } }, x), room[{ { 1, #x } }], room[#x]
  end)
  local room = dc.iota("f32[6, 2]", 1)
  local put, part, last = f(dc.full("f32[3, 2]", 9), room)
  lu.assertEquals(put[{ {}, 1 }]:totable(), { 9, 9, 9, 3, 4, 5 })
  lu.assertEquals({ part.shape, part[{ {}, 1 }]:totable(), last:totable() }, { { 3, 2 }, { 0, 1, 2 }, { 2, 2 } })
  lu.assertErrorMsgContains("fixed size is needed", dc.fn, "g(x: f32[t <= 4], small: f32[3])", function(x, small)
    return small[{ { 1, #x } }]
  end)
end

function TestBounded:test_every_number_is_looked_at_by_itself()
  local f = dc.fn("f(x: f32[t <= 8, 3]) -> f32[t, 3], f32[3, t]", function(x) return 1 / x, x:log():transpose() end)
  dc.check_numbers(true)
  f(dc.ones "f32[2, 3]") -- what lies behind is no number of the script's
  lu.assertErrorMsgContains("div: inf at [1, 1], 12 of 12 elements, of f32[4, 3]", f, dc.zeros "f32[4, 3]")
  dc.check_numbers(false)
  f(dc.zeros "f32[4, 3]")
end

function TestBounded:test_what_is_refused()
  local f = dc.fn("f(x: f32[n <= 8]) -> f32[n]", function(x) return x * 2 end)
  local path = os.tmpname()
  lu.assertErrorMsgContains("files hold functions of fixed sizes", f.export, f, path)
  f:export(path, { n = 4 })
  os.remove(path)
  local g = dc.fn("g(x: f32[n]) -> f32[n]", function(x) return x * 2 end, nil, { limit = 2 })
  g(dc.ones "f32[1]")
  g(dc.ones "f32[2]")
  lu.assertErrorMsgContains("declare 'n <= 512'", g, dc.ones "f32[3]")
  local kept = {}
  dc.fn("h(x: f32[n <= 8]) -> f32[]", function(x)
    kept.n, kept.x = #x, x
    return x:sum()
  end)
  for _, make in ipairs { function() return dc.iota(kept.n) end, function() return dc.zeros(kept.x) end,
    function() return dc.ones "f32[1]":expand(kept.n) end, function() return kept.n * dc.ones "f32[2]" end } do
    lu.assertErrorMsgContains("known only while its function is traced", make)
  end
  lu.assertErrorMsgContains("fixed size is needed", dc.fn, "p(x: f32[n <= 8])", function(x)
    return x + dc.state(x)
  end)
  lu.assertErrorMsgContains("xs may have no element along axis 1", dc.fn, "q(x: f32[0 <= n <= 8])", function(x)
    return dc.associative_scan(function(a, b) return a + b end, x)
  end)
end

-- Steps of an optimiser over a last batch that is smaller.
function TestBounded:test_training_with_batches_of_any_size()
  local nn, optim = require "deepc.nn", require "deepc.optim"
  local data = require "deepc.data"
  local function train(size)
    dc.seed(1)
    local net = nn.Sequential { nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2) }
    local opt = optim.Adam(net:parameters(), { lr = 1e-2 })
    local step = dc.fn(("step(x: f32[%s, 2], y: i32[batch]) -> f32[]"):format(size), function(x, y)
      local loss = nn.cross_entropy(net(x), y)
      opt:step(loss)
      return loss
    end)
    local set = data.set(dc.randn("f32[37, 2]", { seed = 2 }), dc.randint("i32[37]", { seed = 3, high = 2 }))
    local losses = {}
    for _ = 1, 3 do
      for x, y in set:batches { size = 16, last = "keep" } do
        losses[#losses + 1] = step(x, y):item()
      end
    end
    return losses, step:explain()
  end
  local bounded, text = train "batch <= 16"
  local fixed = train "batch"
  lu.assertStrContains(text, "1 specialisation,")
  lu.assertEquals(#bounded, 9)
  lu.assertTrue(near(bounded, fixed))
end

function TestBounded:test_recurrent_layers()
  local nn = require "deepc.nn"
  for _, make in ipairs { nn.RNN, nn.LSTM, nn.GRU } do
    dc.seed(4)
    local net = make(3, 4, { layers = 2, bidirectional = true })
    local function run(x, n)
      local y, last = net(x, nil, { lengths = n })
      local loss = y:square():mean()
      local grads = dc.grad(loss, { net.weight_ih_l0, net.weight_hh_l1_reverse })
      return y, make == nn.LSTM and last.h or last, loss, table.unpack(grads)
    end
    local bounded = dc.fn("f(x: f32[t <= 7, batch <= 5, 3], n: i32[batch])", run)
    local fixed = dc.fn("g(x: f32[t, batch, 3], n: i32[batch])", run)
    for _, size in ipairs { { 3, 2 }, { 7, 5 }, { 1, 1 } } do
      local x = dc.randn(("f32[%d, %d, 3]"):format(size[1], size[2]), { seed = 1 })
      local n = dc.iota(size[2]) % size[1] + 1
      local got, want = { bounded(x, n) }, { fixed(x, n) }
      for i = 1, #want do
        lu.assertEquals(got[i].shape, want[i].shape)
        lu.assertTrue(near(values(got[i]), values(want[i])), ("%s %d"):format(net, i))
      end
    end
    lu.assertErrorMsgContains("length 4 outside 0..", bounded, dc.zeros "f32[3, 1, 3]", dc.tensor({ 4 }, "i32"))
    local one = nn.GRUCell(3, 4)
    local cell = dc.fn("cell(x: f32[batch <= 5, 3]) -> f32[batch, 4]", function(x) return (one(x)) end)
    lu.assertEquals(cell(dc.ones "f32[2, 3]").shape, { 2, 4 })
  end
end

-- Schedules are compared by what kernels compute for the bound.
function TestBounded:test_tuning()
  local f = dc.fn("f(x: f32[t <= 40, 32], w: f32[32, 24]) -> f32[t, 24]", function(x, w) return x:matmul(w):tanh() end)
  local x, w = dc.randn("f32[7, 32]", { seed = 1 }), dc.randn("f32[32, 24]", { seed = 2 })
  local before = f(x, w):totable()
  dc.tune(f, { seconds = 0.3 })
  lu.assertTrue(near(f(x, w):totable(), before))
end

function TestBounded:test_no_size_is_below_zero()
  lu.assertErrorMsgContains("fixed size is needed", dc.fn, "f(x: f32[0 <= t <= 8])", function(x)
    return x[{ { 2, -1 } }]
  end)
  lu.assertErrorMsgContains("fixed size is needed", dc.fn, "f(x: f32[0 <= t <= 8, 3])", function(x)
    return x:argmax(1)
  end)
  local f = dc.fn("f(x: f32[0 <= t <= 8, 3]) -> f32[3], f32[3], i32[t]", function(x)
    return x:sum(1), x:max(1), x:argmax(2)
  end)
  local sum, max, at = f(dc.ones "f32[0, 3]")
  lu.assertEquals({ sum:totable(), max[1]:item(), at.shape }, { { 0, 0, 0 }, -math.huge, { 0 } })
end

-- More than what a product of sizes may have.
function TestBounded:test_five_bounded_dims()
  local text = "f(x: f32[a <= 3, b <= 3, c <= 2, d <= 3, e <= 2])"
  local function run(x)
    local y = x - x:mean { axis = 3, keep = true }
    return y:softmax(5), (y ^ 2):sum { axis = { 1, 2 }, keep = true }, dc.grad((y ^ 3):sum(), x)
  end
  local bounded = dc.fn(text, run)
  local fixed = dc.fn((text:gsub(" <= %d", "")), run)
  local x = dc.randn("f32[2, 3, 1, 2, 2]", { seed = 5 })
  local got, want = { bounded(x) }, { fixed(x) }
  for i = 1, 3 do
    lu.assertEquals(got[i].shape, want[i].shape)
    lu.assertTrue(near(got[i]:totable(), want[i]:totable()), i)
  end
  lu.assertErrorMsgContains("fixed size is needed", dc.fn, (text:gsub("x:", "v:")), function(v)
    return v:reshape(-1)
  end)
end
