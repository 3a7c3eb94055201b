-- What a function with a bounded dim does takes the time of its elements: loops end at the size, and give what fixed
-- sizes give.
local lu = require "luaunit"
local dc = require "deepc"

local on_cpu = (os.getenv "DEEPC_DEVICE" or "cpu") == "cpu"

TestBoundedCost = {}

-- The type with numbers for the dims, of normal numbers, or of NaN.
local function argument(type, seed, poison)
  return poison and dc.full(type, 0 / 0) or dc.randn(type, { seed = seed })
end

local function arguments(params, n, poison)
  local list = {}
  for type in params:gmatch "f32%[[^%]]*%]" do
    list[#list + 1] = argument((type:gsub("T", tostring(n))), n + #list, poison)
  end
  return table.unpack(list)
end

local function near(got, want)
  local far, large = (got - want):abs():max():item(), want:abs():max():item()
  return far <= 1e-4 * math.max(1, large)
end

-- The bounded function, called with all sizes behind a call that left NaN in its memory, gives what fixed ones give.
local function check(name, params, bound, sizes, body)
  local dim = ("%d <= t <= %d"):format(math.min(table.unpack(sizes)), bound)
  local bounded = dc.fn("f(" .. params:gsub("T", dim, 1):gsub("T", "t") .. ")", body)
  local fixed = dc.fn("g(" .. params:gsub("T", "t") .. ")", body, nil, { limit = #sizes })
  pcall(bounded, arguments(params, bound, true))
  for _, n in ipairs(sizes) do
    local got, want = { bounded(arguments(params, n)) }, { fixed(arguments(params, n)) }
    lu.assertEquals(#got, #want, name)
    for i = 1, #got do
      lu.assertEquals(got[i].shape, want[i].shape, name)
      lu.assertTrue(near(got[i], want[i]), ("%s, result %d of size %d"):format(name, i, n))
    end
  end
  return bounded
end

-- In kernels of such names: all that is stored, or added up, for elements of the bounded dim has a limit.
local function check_limits(f, names, what)
  local found = 0
  for n, k in ipairs(on_cpu and f:kernels() or {}) do
    for line in f:source(n, "nest"):gsub("\n *&", " &"):gmatch(k.name:find(names) and what or "^$") do
      found = found + 1
      lu.assertStrContains(line, " needed ")
    end
  end
  lu.assertTrue(not on_cpu or found > 0)
end

-- Gradients of kernels add up over the batch.
function TestBoundedCost:test_gradients_of_convolutions_end_at_the_batch()
  local f = check("conv2d", "x: f32[T, 8, 9, 9], w: f32[16, 8, 3, 3]", 67, { 67, 1, 5 }, function(x, w)
    return dc.grad(dc.conv2d(x, w, { padding = 1 }):square():mean(), w)
  end)
  check_limits(f, "_k67_", "add=[^\n]*")
end

function TestBoundedCost:test_random_convolutions_over_a_batch()
  local seed = 7
  local function draw(list)
    seed = (seed * 1103515245 + 12345) % (1 << 31)
    return list[(seed >> 8) % #list + 1]
  end
  for _ = 1, 12 do
    local two, groups, width = draw { true, false }, draw { 1, 1, 2, 4 }, draw { 5, 8, 11 }
    local opt = { padding = draw { 0, 1 }, stride = draw { 1, 1, 2 }, dilation = draw { 1, 1, 2 }, groups = groups }
    local taps, channels = draw { 1, 2, 3 }, draw { 4, 16 }
    local dims = two and ("%d, %d"):format(width, width) or width
    local window = two and ("%d, %d"):format(taps, taps) or taps
    local params = ("x: f32[T, 4, %s], w: f32[%d, %d, %s]"):format(dims, channels, 4 // groups, window)
    local conv, pool = two and dc.conv2d or dc.conv1d, two and dc.max_pool2d or dc.max_pool1d
    local name = ("%s %d %d %d %d"):format(params, opt.padding, opt.stride, opt.dilation, groups)
    check(name, params, 9, { 3, 9, 1 }, function(x, w)
      local y = pool(conv((x * 2):tanh(), w, opt):relu(), 1, { stride = 1 })
      local dx, dw = table.unpack(dc.grad((y * y):mean(), { x, w }))
      return y, dx, dw
    end)
  end
end

-- Sums of batches in parts, of which whole ones are left out.
function TestBoundedCost:test_a_step_of_convolutions_and_norms()
  local function norm(x)
    local c = x - x:mean { axis = { 1, 3, 4 }, keep = true }
    return c / (c:square():mean { axis = { 1, 3, 4 }, keep = true } + 1e-5):sqrt()
  end
  check("step", "x: f32[T, 1, 12, 12], w: f32[8, 1, 3, 3], v: f32[4, 8, 3, 3]", 80, { 80, 1, 7 }, function(x, w, v)
    local y = dc.max_pool2d(norm(dc.conv2d(x, w, { padding = 1 })):relu(), 2)
    local z = norm(dc.conv2d(y, v, { padding = 1 })):relu()
    local loss = dc.max_pool2d(z, 2):square():mean()
    return loss, table.unpack(dc.grad(loss, { w, v }))
  end)
end

-- What is not changed by a put is copied as far as there are elements.
function TestBoundedCost:test_puts_store_what_there_is()
  local i = dc.tensor({ 2, 0 }, "i32[2]")
  local f = check("put", "x: f32[T, 3]", 67, { 67, 3, 20 }, function(x) return x:put(i, 1) end)
  check_limits(f, "^S_", "out0%[[^\n]*x0%[[^\n]*")
  f = check("take", "x: f32[T, 3]", 67, { 67, 3, 20 }, function(x)
    return dc.grad(x:take(i % #x, 1):square():sum(), x)
  end)
  check_limits(f, "^S_", "out0%[[^\n]*0:f32[^\n]*")
end

function TestBoundedCost:test_puts_of_all_kinds()
  local i = dc.tensor({ 1, 0 }, "i32[2]")
  check("chain", "x: f32[T, 4]", 17, { 3, 17, 5 }, function(x)
    local y = x:put(i, 1):put(i + 1, x[{ { 1, 2 } }] * 2)
    return y, y:sum(1), x:put(i, 0) + x, (x * 3):put(i, 2):put(i % 1, 5)
  end)
  check("beside", "x: f32[5, T], y: f32[2, T]", 17, { 17, 1, 8 }, function(x, y)
    return x:put(i, y), x:put(i, y * 2, 1):exp():sum(2), dc.grad(x:put(i, y):square():sum(), x)
  end)
  check("all", "x: f32[T, 3], y: f32[T, 3]", 17, { 17, 2, 9 }, function(x, y)
    local places = dc.iota(#x):flip(1)
    return x:put(places, y), dc.grad((x:take(places, 1) * y):square():sum(), x),
      dc.grad((x:put(places, y) * x):sum(), y)
  end)
  check("loop", "x: f32[T, 3]", 17, { 17, 1, 9 }, function(x)
    local c = dc.fori(#x, function(k, c) return c:put(k, c[1] * 0.5 + k:cast "f32") end, x)
    local d = dc.fori(3, function(k, d) return d:put(k % #x, 1):put(k * 0, d:sum(1) / 9) end, x)
    return c, d, c:sum() + d:sum()
  end)
  check("vmap", "x: f32[4, T]", 17, { 17, 2, 9 }, function(x)
    return dc.vmap(function(v) return v:put(i, 1) + v:put({ -1 }, 2) end)(x),
      dc.vmap(function(v) return v:put(i % 4, 1) end, { in_axes = { 2 } })(x)
  end)
end

-- Stacks of loops begin with memory of their own, and masks by sizes stay in the loops that they end.
function TestBoundedCost:test_loops_over_bounded_dims()
  local function scan(x)
    return dc.grad(dc.scan(function(c, e) return (c * 0.5 + e):tanh() end, dc.zeros "f32[3]", x):sum(), x)
  end
  local f = check("scan", "x: f32[T, 3]", 67, { 67, 1, 20 }, scan)
  lu.assertNil(on_cpu and f:plan():match "copy%s+%+%d+ <%- result 1" or nil) -- of all elements
  f = check("loop", "x: f32[T, 3]", 67, { 67, 1, 20 }, function(x)
    return dc.loop(function(c) return c:square():sum():gt(1) end, function(c) return c * 0.5 end, x, { max = 20 }),
      dc.fori(3, function(_, c) return c:softmax(1) + c:max(1) + c:logsumexp(1) end, x)
  end)
  for n in ipairs(on_cpu and f:kernels() or {}) do
    lu.assertNotStrContains(f:source(n, "nest"), "bool[201]") -- a mask that is read
  end
  check("captured", "x: f32[T, 3], y: f32[T, 4]", 17, { 17, 1, 9 }, function(x, y)
    local keys = (y * 2):tanh()
    return dc.fori(3, function(_, c) return c + (x * c:sum()):transpose():matmul(keys):sum(2):tanh() end, x[1]),
      dc.loop(function(c) return (c * x:sum(2)):sum():lt(5) end, function(c) return c + keys:sum(2):abs() + 0.1 end,
        dc.zeros "f32[t]", { max = 9 })
  end)
end

-- Which element of a window was the largest is of no concern where zeros are picked.
function TestBoundedCost:test_pools_along_bounded_dims()
  local function grad(pool, opt)
    return function(x) return dc.grad(pool(x, 3, opt):square():sum(), x) end
  end
  local f = check("max", "x: f32[1, 2, T]", 67, { 67, 3, 20 }, grad(dc.max_pool1d, { stride = 2, padding = 1 }))
  check_limits(f, ".", "out%d+%[[^\n]*x%d+%[[^\n]*")
  check("stride", "x: f32[2, 3, T]", 17, { 17, 3, 8 }, grad(dc.max_pool1d, { stride = 3 }))
  check("overlap", "x: f32[2, 3, T]", 17, { 17, 3, 8 }, grad(dc.max_pool1d, { stride = 1, padding = 1 }))
  check("mean", "x: f32[2, 3, T]", 17, { 17, 3, 8 }, grad(dc.avg_pool1d, { stride = 2, padding = 1 }))
  check("both", "x: f32[2, T, T]", 11, { 11, 3, 8 }, function(x)
    local y = x:reshape(2, 1, #x[1], #x[1])
    return dc.grad(dc.max_pool2d(y, 3, { stride = 2, padding = 1 }):square():sum(), x)
  end)
  check("where", "x: f32[3, T], y: f32[3, T]", 17, { 17, 1, 8 }, function(x, y)
    local z = dc.where(x:gt(y), (x * 2):cumsum(2), 0)
    return z, z:sum(2), dc.where(dc.iota(x, 2):lt(3), z, 0):sum(1), dc.where(x:lt(0), dc.where(x:lt(1), z, 0), 0)
  end)
end

-- The layout of what a convolution gives is turned as far as there are elements.
function TestBoundedCost:test_windows_along_bounded_dims()
  local f = check("conv1d", "x: f32[1, 3, T], w: f32[2, 3, 3]", 67, { 67, 1, 20 }, function(x, w)
    return dc.conv1d(x, w, { padding = 1 })
  end)
  check_limits(f, "^E_1_2_67", "out0%[[^\n]*")
end

-- Pieces of a whole that lie beside each other end where it does.
function TestBoundedCost:test_pieces_along_other_axes()
  local f = check("cumsum", "x: f32[T, 20]", 67, { 67, 1, 20 }, function(x) return x:cumsum(2) end)
  check_limits(f, "^E_67", "out%d+%[[^\n]*")
  check("cumulative", "x: f32[3, 19, T]", 17, { 17, 1, 8 }, function(x)
    local y = x * 0.1 + 1
    return y:cumsum { axis = 2, reverse = true }, y:cumprod(2), x:cummax(2), x:logcumsumexp(2),
      dc.grad(y:cumprod(2):sum(), x), dc.grad(x:cummax(2):square():sum(), x)
  end)
  check("concat", "x: f32[T, 3], y: f32[T, 40]", 17, { 17, 1, 8 }, function(x, y)
    local z = dc.concat({ x, y, x * 2, y:exp() }, 2)
    return z, z:sum(1), z:softmax(2), dc.concat({ z, z[{ { 1, 1 } }] }, 1), dc.grad(z:square():sum(), y),
      dc.concat({ x:transpose(), y:transpose() }, 1):cumsum(2), x:pad({ { 0, 0 }, { 1, 2 } }, 7):sum(1)
  end)
end

-- Rows of a call into a state with room for more, and the same rows into several.
function TestBoundedCost:test_rows_that_are_put_end_at_their_number()
  local keys, values = dc.state "f32[24, 4]", dc.state "f32[24, 4]"
  local f = dc.fn("f(x: f32[1 <= t <= 16, 4])", function(x)
    keys:set(keys:put({ { 3, #x + 2 } }, x * 2))
    values:set(values:put({ { 3, #x + 2 } }, x + 1))
  end)
  for _, n in ipairs { 16, 2, 9 } do
    local x, was = dc.randn(("f32[%d, 4]"):format(n), { seed = n }), { keys * 1, values * 1 }
    f(x)
    lu.assertEquals(keys:totable(), was[1]:put({ { 3, n + 2 } }, x * 2):totable())
    lu.assertEquals(values:totable(), was[2]:put({ { 3, n + 2 } }, x + 1):totable())
  end
  check_limits(f, "^E_24_4", "out0%[[^\n]*")
end
